// SPDX-License-Identifier: Apache-2.0

// azure-storage, the SDK for JavaScript before @azure/storage-queue, as a client of scenarios_test.py: reads an
// operation in JSON from each line of its input, does it by the SDK, and writes what the SDK answers. CONNECTION
// names the gateway, NODE_PATH the SDK's folder.
"use strict";

const readline = require("node:readline");
const util = require("node:util");
const azure = require("azure-storage");

const settings = Object.fromEntries(
  process.env.CONNECTION.split(";").filter(Boolean).map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
const inAnHour = () => new Date(Date.now() + 3600e3);
const stamp = (time) => new Date(time).toISOString().replace(".000Z", "Z");
// Its default escapes a text for XML a second time. The plain encoder leaves it as it is, as other clients do.
const encoders = {
  undefined: azure.QueueMessageEncoder,
  TextBase64: azure.QueueMessageEncoder.TextBase64QueueMessageEncoder,
  BinaryBase64: azure.QueueMessageEncoder.BinaryBase64QueueMessageEncoder,
};

function serviceOf(step) {
  const hosts = { primaryHost: settings.QueueEndpoint, secondaryHost: settings.QueueSecondaryEndpoint };
  const service = step.with
    ? azure.createQueueServiceWithSas(hosts, step.with)
    : azure.createQueueService(settings.AccountName, settings.AccountKey, hosts);
  service.messageEncoder = new encoders[step.encode]();
  // Each operation answers by a callback.
  return (operation, ...input) => util.promisify(service[operation].bind(service))(...input);
}

const isBinary = (step) => step.encode === "BinaryBase64";
const shown = (step) => (m) => ({
  id: m.messageId, receipt: m.popReceipt, dequeue_count: Number(m.dequeueCount),
  text: isBinary(step) ? m.messageText.toString("base64") : m.messageText });

const operations = {
  async ListQueues(step, call) {
    const found = { pages: [], metadata: [] };
    const options = { maxResults: step.page_size, include: step.metadata ? "metadata" : undefined };
    let token = null;
    do {
      const page = await call("listQueuesSegmentedWithPrefix", step.prefix, token, options);
      found.pages.push(page.entries.map((queue) => queue.name));
      found.metadata.push(...page.entries.map((queue) => queue.metadata));
      token = page.continuationToken;
    } while (token);
    return found;
  },
  async GetServiceProperties(step, call) {
    const { Cors, Logging } = await call("getServiceProperties");
    const rules = (Cors && Cors.CorsRule) || [];
    return {
      cors: rules.map((rule) => ({
        origins: rule.AllowedOrigins[0], methods: rule.AllowedMethods[0],
        max_age: Number(rule.MaxAgeInSeconds) })),
      logging_days: Number(Logging.RetentionPolicy.Days),
    };
  },
  SetServiceProperties: (step, call) => call("setServiceProperties", {
    Cors: { CorsRule: step.cors.map((rule) => ({
      AllowedOrigins: [rule.origins], AllowedMethods: [rule.methods], AllowedHeaders: ["*"],
      ExposedHeaders: ["*"], MaxAgeInSeconds: rule.max_age })) },
    Logging: { Version: "1.0", Read: true, Write: false, Delete: false,
      RetentionPolicy: { Enabled: true, Days: step.logging_days } },
  }),
  async GetServiceStats(step, call) {
    const secondary = { locationMode: azure.StorageUtilities.LocationMode.SECONDARY_ONLY };
    return { status: (await call("getServiceStats", secondary)).GeoReplication.Status };
  },
  CreateQueue: (step, call) => call("createQueue", step.queue, { metadata: step.metadata }),
  DeleteQueue: (step, call) => call("deleteQueue", step.queue),
  async GetQueueMetadata(step, call) {
    const found = await call("getQueueMetadata", step.queue);
    return { metadata: found.metadata, count: Number(found.approximateMessageCount) };
  },
  SetQueueMetadata: (step, call) => call("setQueueMetadata", step.queue, step.metadata),
  async GetQueueAcl(step, call) {
    const { signedIdentifiers } = await call("getQueueAcl", step.queue);
    return { policies: Object.entries(signedIdentifiers).map(([id, policy]) => ({
      id, permissions: policy.Permissions, start: stamp(policy.Start), expiry: stamp(policy.Expiry) })) };
  },
  SetQueueAcl: (step, call) => call("setQueueAcl", step.queue, Object.fromEntries(
    step.policies.map((policy) => [policy.id, {
      Permissions: policy.permissions, Start: new Date(policy.start), Expiry: new Date(policy.expiry) }]))),
  async PutMessage(step, call) {
    const text = isBinary(step) ? Buffer.from(step.text, "base64") : step.text;
    const put = await call("createMessage", step.queue, text, {
      messageTimeToLive: step.ttl, visibilityTimeout: step.visibility });
    return { id: put.messageId, receipt: put.popReceipt,
      expires: new Date(put.expirationTime).getUTCFullYear() };
  },
  async GetMessages(step, call) {
    const got = await call("getMessages", step.queue, {
      numOfMessages: step.count, visibilityTimeout: step.visibility });
    return { messages: got.map(shown(step)) };
  },
  async PeekMessages(step, call) {
    return { messages: (await call("peekMessages", step.queue, { numOfMessages: step.count })).map(shown(step)) };
  },
  async UpdateMessage(step, call) {
    const updated = await call("updateMessage", step.queue, step.id, step.receipt, step.visibility, {
      messageText: step.text });
    return { receipt: updated.popReceipt };
  },
  DeleteMessage: (step, call) => call("deleteMessage", step.queue, step.id, step.receipt),
  ClearMessages: (step, call) => call("clearMessages", step.queue),
  Version: async () => ({ version: require("azure-storage/package.json").version }),
  async MakeQueueSas(step) {
    const service = azure.createQueueService(settings.AccountName, settings.AccountKey, settings.QueueEndpoint);
    const policy = step.policy ? { Id: step.policy } : {
      AccessPolicy: { Permissions: step.permissions, Expiry: inAnHour() } };
    return { sas: service.generateSharedAccessSignature(step.queue, policy) };
  },
  async MakeAccountSas(step) {
    return { sas: azure.generateAccountSharedAccessSignature(settings.AccountName, settings.AccountKey, {
      AccessPolicy: { Services: "q", ResourceTypes: step.types, Permissions: step.permissions,
        Expiry: inAnHour() } }) };
  },
};

async function answer(step) {
  try {
    return (await operations[step.do](step, serviceOf(step))) || {};
  } catch (error) {
    if (/^Queue name /.test(error.message)) return { lacks: "WrongNames" };
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
