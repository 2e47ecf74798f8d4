// SPDX-License-Identifier: Apache-2.0

// @azure/storage-queue as a client of scenarios_test.py: reads an operation in JSON from each line of its input,
// does it by the SDK, and writes what the SDK answers. CONNECTION names the gateway, NODE_PATH the SDK's folder,
// and STORAGE_QUEUE the name of the SDK in it; with OWN_RETRIES the SDK repeats calls as it does by itself.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");
const storageQueue = process.env.STORAGE_QUEUE;
const azure = require(storageQueue);

const settings = Object.fromEntries(
  process.env.CONNECTION.split(";").filter(Boolean).map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
const options = process.env.OWN_RETRIES ? {} : { retryOptions: { maxTries: 1 } };
const inAnHour = () => new Date(Date.now() + 3600e3);
const stamp = (date) => date.toISOString().replace(".000Z", "Z");

function serviceOf(step) {
  if (!step.with) return azure.QueueServiceClient.fromConnectionString(process.env.CONNECTION, options);
  return new azure.QueueServiceClient(`${settings.QueueEndpoint}?${step.with}`, undefined, options);
}

const shown = (m) => ({
  id: m.messageId, text: m.messageText, receipt: m.popReceipt, dequeue_count: m.dequeueCount,
});

const operations = {
  async ListQueues(step, service) {
    const found = { pages: [], metadata: [] };
    const listed = service.listQueues({ prefix: step.prefix, includeMetadata: step.metadata });
    for await (const page of listed.byPage({ maxPageSize: step.page_size })) {
      const items = page.queueItems || [];
      found.pages.push(items.map((item) => item.name));
      found.metadata.push(...items.map((item) => item.metadata));
    }
    return found;
  },
  async GetServiceProperties(step, service) {
    const { cors, queueAnalyticsLogging } = await service.getProperties();
    return {
      cors: cors.map((rule) => ({
        origins: rule.allowedOrigins, methods: rule.allowedMethods, max_age: rule.maxAgeInSeconds })),
      logging_days: queueAnalyticsLogging.retentionPolicy.days,
    };
  },
  SetServiceProperties: (step, service) => service.setProperties({
    cors: step.cors.map((rule) => ({
      allowedOrigins: rule.origins, allowedMethods: rule.methods, allowedHeaders: "*", exposedHeaders: "*",
      maxAgeInSeconds: rule.max_age })),
    queueAnalyticsLogging: {
      version: "1.0", read: true, write: false, deleteProperty: false,
      retentionPolicy: { enabled: true, days: step.logging_days } },
  }).then(() => ({})),
  async GetServiceStats() {
    // This client asks at the secondary location if that is its address.
    const key = new azure.StorageSharedKeyCredential(settings.AccountName, settings.AccountKey);
    const secondary = new azure.QueueServiceClient(settings.QueueSecondaryEndpoint, key, options);
    return { status: (await secondary.getStatistics()).geoReplication.status };
  },
  CreateQueue: (step, service, queue) => queue.create({ metadata: step.metadata }).then(() => ({})),
  DeleteQueue: (step, service, queue) => queue.delete().then(() => ({})),
  async GetQueueMetadata(step, service, queue) {
    const properties = await queue.getProperties();
    return { metadata: properties.metadata, count: properties.approximateMessagesCount };
  },
  SetQueueMetadata: (step, service, queue) => queue.setMetadata(step.metadata).then(() => ({})),
  async GetQueueAcl(step, service, queue) {
    const { signedIdentifiers } = await queue.getAccessPolicy();
    return { policies: signedIdentifiers.map(({ id, accessPolicy }) => ({
      id, permissions: accessPolicy.permissions, start: stamp(accessPolicy.startsOn),
      expiry: stamp(accessPolicy.expiresOn) })) };
  },
  SetQueueAcl: (step, service, queue) => queue.setAccessPolicy(step.policies.map((policy) => ({
    id: policy.id, accessPolicy: {
      permissions: policy.permissions, startsOn: new Date(policy.start), expiresOn: new Date(policy.expiry) },
  }))).then(() => ({})),
  async PutMessage(step, service, queue) {
    const put = await queue.sendMessage(step.text, {
      messageTimeToLive: step.ttl, visibilityTimeout: step.visibility });
    return { id: put.messageId, receipt: put.popReceipt, expires: put.expiresOn.getUTCFullYear() };
  },
  async GetMessages(step, service, queue) {
    const got = await queue.receiveMessages({
      numberOfMessages: step.count, visibilityTimeout: step.visibility });
    return { messages: got.receivedMessageItems.map(shown) };
  },
  async PeekMessages(step, service, queue) {
    const peeked = await queue.peekMessages({ numberOfMessages: step.count });
    return { messages: peeked.peekedMessageItems.map(shown) };
  },
  async UpdateMessage(step, service, queue) {
    const updated = await queue.updateMessage(step.id, step.receipt, step.text, step.visibility);
    return { receipt: updated.popReceipt };
  },
  DeleteMessage: (step, service, queue) => queue.deleteMessage(step.id, step.receipt).then(() => ({})),
  ClearMessages: (step, service, queue) => queue.clearMessages().then(() => ({})),
  // It does not let its package.json be required.
  Version: async () => ({ version: JSON.parse(fs.readFileSync(
    path.join(process.env.NODE_PATH, storageQueue, "package.json"))).version }),
  async MakeQueueSas(step, service, queue) {
    const url = queue.generateSasUrl(step.policy ? { identifier: step.policy } : {
      permissions: azure.QueueSASPermissions.parse(step.permissions), expiresOn: inAnHour() });
    return { sas: url.slice(url.indexOf("?") + 1) };
  },
  async MakeAccountSas(step, service) {
    const url = service.generateAccountSasUrl(
      inAnHour(), azure.AccountSASPermissions.parse(step.permissions), step.types);
    return { sas: url.slice(url.indexOf("?") + 1) };
  },
};

async function answer(step) {
  if (step.encode && !Object.keys(azure).some((name) => name.includes("Base64"))) {
    return { lacks: step.encode };
  }
  const service = serviceOf(step);
  const queue = step.queue && service.getQueueClient(step.queue);
  try {
    return await operations[step.do](step, service, queue);
  } catch (error) {
    if (!error.statusCode) throw error;
    return { refused: `${error.statusCode} ${error.code}` };
  }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await answer(JSON.parse(line))));
  }
}

main();
