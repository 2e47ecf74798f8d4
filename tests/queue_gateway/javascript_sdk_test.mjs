// SPDX-License-Identifier: Apache-2.0

// Azure's own SDK for JavaScript, unmodified, on every operation. MUSTER_AZURE_NODE_MODULES is the folder
// that has it by the name STORAGE_QUEUE, CONNECTION the connection string of a gateway, and UPDATES_TEXTS "yes" if its engine can.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.MUSTER_AZURE_NODE_MODULES}/`);
const { QueueServiceClient, QueueSASPermissions, AccountSASPermissions, AccountSASServices } =
  require(process.env.STORAGE_QUEUE);

const service = QueueServiceClient.fromConnectionString(process.env.CONNECTION, {
  retryOptions: { maxTries: 1 },
});
const codeOf = (promise) =>
  promise.then(
    () => assert.fail("it was not refused"),
    (error) => `${error.statusCode} ${error.code}`,
  );

const queue = service.getQueueClient("from-javascript");
await queue.create({ metadata: { one: "1" } });
assert.equal(await codeOf(queue.create({ metadata: { one: "2" } })), "409 QueueAlreadyExists");
// The newest SDK reads the code of an error in its header only.
for (const metadata of [{ one: "1" }, { one: "2" }]) {
  assert.equal((await queue.createIfNotExists({ metadata })).succeeded, false);
}
assert.equal((await service.getQueueClient("not-there").deleteIfExists()).succeeded, false);
await queue.setMetadata({ two: "2" });
assert.deepEqual((await queue.getProperties()).metadata, { two: "2" });
assert.equal(await queue.exists(), true);

// The SDK leaves line feeds out of what it puts.
const texts = ["", "h\u00e9 \u{1f600}", " <&>\"' \t ", Buffer.from("base64").toString("base64")];
for (const text of texts) await queue.sendMessage(text);
assert.equal((await queue.getProperties()).approximateMessagesCount, texts.length);
const peeked = await queue.peekMessages({ numberOfMessages: 32 });
assert.deepEqual(peeked.peekedMessageItems.map((m) => m.messageText), texts);
const received = await queue.receiveMessages({ numberOfMessages: 32, visibilityTimeout: 60 });
assert.deepEqual(received.receivedMessageItems.map((m) => m.messageText), texts);
const [first] = received.receivedMessageItems;
assert.equal(first.dequeueCount, 1);
const updates = process.env.UPDATES_TEXTS === "yes";
const text = updates ? "updated" : first.messageText;
const updated = await queue.updateMessage(first.messageId, first.popReceipt, text, 0);
if (updates) {
  assert.equal(await codeOf(queue.deleteMessage(first.messageId, first.popReceipt)),
    "400 PopReceiptMismatch");
} else {
  assert.equal(await codeOf(queue.updateMessage(first.messageId, first.popReceipt, "other", 0)),
    "501 NotImplemented");
}
const [again] = (await queue.receiveMessages()).receivedMessageItems;
assert.equal(again.messageText, text);
assert.notEqual(again.popReceipt, updated.popReceipt);
await queue.deleteMessage(again.messageId, again.popReceipt);
await queue.clearMessages();
assert.deepEqual((await queue.receiveMessages()).receivedMessageItems, []);

await queue.setAccessPolicy([{ id: "all", accessPolicy: { permissions: "raup" } }]);
assert.equal((await queue.getAccessPolicy()).signedIdentifiers[0].id, "all");
const expiresOn = new Date(Date.now() + 3600_000);
const sasUrl = queue.generateSasUrl({ permissions: QueueSASPermissions.parse("a"), expiresOn });
const { QueueClient, StorageSharedKeyCredential } = require(process.env.STORAGE_QUEUE);
const adder = new QueueClient(sasUrl);
await adder.sendMessage("x");
assert.equal(await codeOf(adder.receiveMessages()), "403 AuthorizationPermissionMismatch");

// What others put with line ends in it. The SDK knows no reference to a character by its number: a carriage return,
// which readers of XML take for a line feed unless it comes so, stays as it came.
await queue.clearMessages();
const [place, query] = sasUrl.split("?");
const put = await fetch(`${place}/messages?${query}`, {
  method: "POST",
  body: "<QueueMessage><MessageText>a&#xD;\nb\n&#13;c\td</MessageText></QueueMessage>",
});
assert.equal(put.status, 201);
assert.equal((await queue.peekMessages()).peekedMessageItems[0].messageText, "a&#xD;\nb\n&#xD;c\td");

for (const name of ["js-1", "js-2", "js-3"]) await service.createQueue(name);
const names = [];
for await (const page of service.listQueues({ prefix: "js-" }).byPage({ maxPageSize: 2 })) {
  names.push(page.queueItems.map((q) => q.name));
}
assert.deepEqual(names, [["js-1", "js-2"], ["js-3"]]);

await service.setProperties({
  cors: [{ allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "*", exposedHeaders: "*",
           maxAgeInSeconds: 5 }],
});
assert.equal((await service.getProperties()).cors[0].allowedMethods, "GET");
assert.ok(service.generateAccountSasUrl(expiresOn, AccountSASPermissions.parse("l"), "s"));
const settings = Object.fromEntries(
  process.env.CONNECTION.split(";").filter(Boolean).map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
const key = new StorageSharedKeyCredential(settings.AccountName, settings.AccountKey);
const secondary = new QueueServiceClient(settings.QueueSecondaryEndpoint, key);
assert.equal((await secondary.getStatistics()).geoReplication.status, "live");
// It sends every second try of a get to the secondary location.
await queue.clearMessages();
await queue.sendMessage("from the secondary");
const [taken] = (await secondary.getQueueClient("from-javascript").receiveMessages()).receivedMessageItems;
assert.equal(taken.messageText, "from the secondary");
assert.equal((await queue.deleteIfExists()).succeeded, true);
assert.equal(await codeOf(queue.getProperties()), "404 QueueNotFound");
