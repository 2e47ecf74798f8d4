// SPDX-License-Identifier: Apache-2.0

// Azure's own SDK for JavaScript, with a token and without a key of the account: gets a user delegation key, signs
// for one queue with it, and hands that on. MUSTER_AZURE_NODE_MODULES and STORAGE_QUEUE name the SDK, SERVICE is
// the gateway's address and TOKEN a bearer token.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.MUSTER_AZURE_NODE_MODULES}/`);
const { QueueClient, QueueSASPermissions, QueueServiceClient } = require(process.env.STORAGE_QUEUE);

const options = { retryOptions: { maxTries: 1 } };
const hour = 3600_000;
const credential = {
  getToken: async () => ({ token: process.env.TOKEN, expiresOnTimestamp: Date.now() + hour }),
};
const service = new QueueServiceClient(process.env.SERVICE, credential, options);
const queue = service.getQueueClient("delegated");
await queue.create();
const expiresOn = new Date(Date.now() + hour);
const key = await service.getUserDelegationKey(new Date(Date.now() - hour), expiresOn);
assert.equal(key.signedObjectId, "11111111-1111-1111-1111-111111111111");
const url = queue.generateUserDelegationSasUrl(
  { permissions: QueueSASPermissions.parse("ap"), expiresOn }, key);
const holder = new QueueClient(url, undefined, options);
await holder.sendMessage("by delegation");
const [message] = (await holder.receiveMessages()).receivedMessageItems;
assert.equal(message.messageText, "by delegation");
await holder.deleteMessage(message.messageId, message.popReceipt);
await assert.rejects(holder.peekMessages(), { code: "AuthorizationPermissionMismatch" });
await assert.rejects(new QueueClient(url.replace("delegated", "other"), undefined, options).sendMessage("x"),
  { code: "AuthenticationFailed" });
