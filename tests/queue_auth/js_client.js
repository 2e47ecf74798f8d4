// SPDX-License-Identifier: Apache-2.0

// Prints each request that the storage service's JavaScript client makes of a queue, one JSON object
// in each line: {"method","url","headers","operation"}. Run it with NODE_PATH at @azure/storage-queue.
"use strict";

const azure = require("@azure/storage-queue");

const keys = process.argv.slice(2);
const metadata = { Owner: "Sally", a_b: "1", ab: "two  words", a1: "x", "muster-maxdequeue": "5", musterx: "1" };
let sent;

const capture = {
  async sendRequest(request) {
    sent = request;
    throw new Error("captured");
  },
};

function operations(service) {
  const queue = service.getQueueClient("my-queue");
  const message = "6012a834-f3cf-410f-bddd-dc29ee36de2a";
  const receipt = "AgAAAAMAAAAAAAAA+w/x==";
  const acl = [{ id: "readers", accessPolicy: { permissions: "r", expiresOn: new Date(2030, 0) } }];
  return {
    ListQueues: () => service.listQueues({ prefix: "a b&c", includeMetadata: true }).next(),
    GetServiceProperties: () => service.getProperties(),
    SetServiceProperties: () => service.setProperties({ cors: [] }),
    GetServiceStats: () => service.getStatistics(),
    CreateQueue: () => queue.create({ metadata }),
    DeleteQueue: () => queue.delete(),
    GetQueueMetadata: () => queue.getProperties(),
    SetQueueMetadata: () => queue.setMetadata(metadata),
    GetQueueAcl: () => queue.getAccessPolicy(),
    SetQueueAcl: () => queue.setAccessPolicy(acl),
    PutMessage: () => queue.sendMessage("größe 漢 <&>", { visibilityTimeout: 5, messageTimeToLive: -1 }),
    GetMessages: () => queue.receiveMessages({ numberOfMessages: 32, visibilityTimeout: 60 }),
    PeekMessages: () => queue.peekMessages({ numberOfMessages: 5 }),
    UpdateMessage: () => queue.updateMessage(message, receipt, "x", 0),
    DeleteMessage: () => queue.deleteMessage(message, receipt),
    ClearMessages: () => queue.clearMessages(),
  };
}

async function emit(url, credential, wanted) {
  const options = { httpClient: capture, retryOptions: { maxTries: 1 } };
  const service = new azure.QueueServiceClient(url, credential, options);
  for (const [operation, call] of Object.entries(operations(service))) {
    if (wanted && !wanted.includes(operation)) continue;
    sent = undefined;
    await call().catch(() => {});
    if (!sent) throw new Error(operation + " sent nothing");
    const headers = sent.headers.headersArray().map(({ name, value }) => [name, value]);
    console.log(JSON.stringify({ method: sent.method, url: sent.url, headers, operation }));
  }
}

async function main() {
  const expiresOn = new Date(Date.now() + 3600e3);
  const startsOn = new Date(Date.now() - 900e3);
  const ipRange = { start: "127.0.0.1", end: "127.0.0.9" };
  for (const key of keys) {
    const credential = new azure.StorageSharedKeyCredential("sally", key);
    for (const url of ["http://127.0.0.1:10001/sally", "https://sally.queue.localhost",
      "http://127.0.0.1:10001/sally-secondary"]) {
      await emit(url, credential);
    }
    for (const version of ["2015-04-05", "2020-10-02", "2020-12-06", undefined]) {
      const account = azure.generateAccountSASQueryParameters({
        version, startsOn, expiresOn, ipRange, protocol: azure.SASProtocol.HttpsAndHttp,
        permissions: azure.AccountSASPermissions.parse("rwdlacup"),
        services: azure.AccountSASServices.parse("q").toString(),
        resourceTypes: azure.AccountSASResourceTypes.parse("sco").toString() }, credential);
      const all = Object.keys(operations(new azure.QueueServiceClient("http://x/sally")));
      await emit("http://127.0.0.1:10001/sally?" + account, undefined,
        all.filter((name) => !name.includes("Acl")));
      const queue = azure.generateQueueSASQueryParameters({
        version, queueName: "my-queue", startsOn, expiresOn, ipRange, protocol: azure.SASProtocol.Https,
        permissions: azure.QueueSASPermissions.parse("raup") }, credential);
      await emit("https://sally.queue.localhost?" + queue, undefined,
        ["GetQueueMetadata", "PutMessage", "GetMessages", "PeekMessages", "UpdateMessage", "DeleteMessage"]);
    }
  }
}

main();
