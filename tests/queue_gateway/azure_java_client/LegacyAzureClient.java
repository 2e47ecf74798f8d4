// azure-storage of Java, the SDK before azure-storage-queue, as a client of scenarios_test.py: reads an operation in
// JSON from each line of its input, does it by the SDK, and writes what the SDK answers. CONNECTION names the
// gateway; with OWN_RETRIES the SDK repeats calls as it does by itself.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.microsoft.azure.storage.CloudStorageAccount;
import com.microsoft.azure.storage.Constants;
import com.microsoft.azure.storage.CorsHttpMethods;
import com.microsoft.azure.storage.CorsRule;
import com.microsoft.azure.storage.LocationMode;
import com.microsoft.azure.storage.LoggingOperations;
import com.microsoft.azure.storage.ResultContinuation;
import com.microsoft.azure.storage.ResultSegment;
import com.microsoft.azure.storage.RetryNoRetry;
import com.microsoft.azure.storage.ServiceProperties;
import com.microsoft.azure.storage.SharedAccessAccountPolicy;
import com.microsoft.azure.storage.StorageCredentialsSharedAccessSignature;
import com.microsoft.azure.storage.StorageException;
import com.microsoft.azure.storage.queue.CloudQueue;
import com.microsoft.azure.storage.queue.CloudQueueClient;
import com.microsoft.azure.storage.queue.CloudQueueMessage;
import com.microsoft.azure.storage.queue.MessageUpdateFields;
import com.microsoft.azure.storage.queue.QueueListingDetails;
import com.microsoft.azure.storage.queue.QueuePermissions;
import com.microsoft.azure.storage.queue.SharedAccessQueuePolicy;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.stream.Collectors;

public class LegacyAzureClient {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, String> SETTINGS = new HashMap<>();

  private final JsonNode step;

  private LegacyAzureClient(JsonNode step) {
    this.step = step;
  }

  public static void main(String[] arguments) throws Exception {
    for (String pair : System.getenv("CONNECTION").split(";")) {
      SETTINGS.put(pair.split("=", 2)[0], pair.split("=", 2)[1]);
    }
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      System.out.write(JSON.writeValueAsBytes(new LegacyAzureClient(JSON.readTree(line)).answer()));
      System.out.println();
      System.out.flush();
    }
  }

  private Map<String, Object> answer() throws Exception {
    try {
      return run();
    } catch (StorageException error) {
      return refusal(error);
    } catch (NoSuchElementException error) { // of an iteration
      if (!(error.getCause() instanceof StorageException)) throw error;
      return refusal((StorageException) error.getCause());
    } catch (IllegalArgumentException error) { // the SDK itself refuses these
      if (!text("do").equals("PutMessage")) throw error;
      return Map.of("lacks", step.hasNonNull("ttl") ? "WrongTimes" : "WrongTexts");
    }
  }

  private static Map<String, Object> refusal(StorageException error) {
    return Map.of("refused", error.getHttpStatusCode() + " " + error.getErrorCode());
  }

  private Map<String, Object> run() throws Exception {
    CloudQueueClient service = service();
    CloudQueue queue = step.hasNonNull("queue") ? queueOf(service) : null;
    switch (text("do")) {
      case "ListQueues": return listQueues(service);
      case "GetServiceProperties": return getServiceProperties(service);
      case "SetServiceProperties": service.uploadServiceProperties(serviceProperties()); break;
      case "GetServiceStats":
        service.getDefaultRequestOptions().setLocationMode(LocationMode.SECONDARY_ONLY);
        return Map.of("status", service.getServiceStats().getGeoReplication().getStatus().toString().toLowerCase());
      case "CreateQueue": queue.setMetadata(metadata()); queue.create(); break;
      case "DeleteQueue": queue.delete(); break;
      case "GetQueueMetadata":
        queue.downloadAttributes();
        return Map.of("metadata", queue.getMetadata(), "count", queue.getApproximateMessageCount());
      case "SetQueueMetadata": queue.setMetadata(metadata()); queue.uploadMetadata(); break;
      case "GetQueueAcl": return getQueueAcl(queue);
      case "SetQueueAcl": queue.uploadPermissions(policies()); break;
      case "PutMessage": return putMessage(queue);
      case "GetMessages":
        return messages(queue.retrieveMessages(number("count"), number("visibility"), null, null), true);
      case "PeekMessages": return messages(queue.peekMessages(number("count")), false);
      case "UpdateMessage": return updateMessage(queue);
      case "DeleteMessage": queue.deleteMessage(new KnownMessage(text("id"), text("receipt"))); break;
      case "ClearMessages": queue.clear(); break;
      case "MakeQueueSas": return Map.of("sas", queue.generateSharedAccessSignature(queueSas(), text("policy")));
      case "MakeAccountSas": return makeAccountSas();
      case "Version": return Map.of("version", Constants.HeaderConstants.USER_AGENT_VERSION);
      default: throw new IllegalArgumentException(text("do"));
    }
    return Map.of();
  }

  // Which the SDK lets a program make by inheritance only.
  private static class KnownMessage extends CloudQueueMessage {
    KnownMessage(String id, String receipt) {
      super("");
      setMessageId(id);
      setPopReceipt(receipt);
    }
  }

  private String text(String name) {
    return step.hasNonNull(name) ? step.get(name).asText() : null;
  }

  // 0 stands for a number that is not sent.
  private int number(String name) {
    return step.path(name).asInt(0);
  }

  private boolean isBinary() {
    return "BinaryBase64".equals(text("encode"));
  }

  @SuppressWarnings("unchecked")
  private HashMap<String, String> metadata() {
    return step.hasNonNull("metadata") ? JSON.convertValue(step.get("metadata"), HashMap.class) : new HashMap<>();
  }

  private CloudQueueClient service() throws Exception {
    CloudQueueClient service = step.hasNonNull("with")
        ? new CloudQueueClient(URI.create(SETTINGS.get("QueueEndpoint")),
            new StorageCredentialsSharedAccessSignature(text("with")))
        : CloudStorageAccount.parse(System.getenv("CONNECTION")).createCloudQueueClient();
    if (System.getenv("OWN_RETRIES") == null) {
      service.getDefaultRequestOptions().setRetryPolicyFactory(new RetryNoRetry());
    }
    return service;
  }

  private CloudQueue queueOf(CloudQueueClient service) throws Exception {
    CloudQueue queue = service.getQueueReference(text("queue"));
    queue.setShouldEncodeMessage(step.hasNonNull("encode"));
    return queue;
  }

  private Map<String, Object> listQueues(CloudQueueClient service) throws Exception {
    List<Object> pages = new ArrayList<>();
    List<Object> metadata = new ArrayList<>();
    QueueListingDetails details =
        step.path("metadata").asBoolean() ? QueueListingDetails.METADATA : QueueListingDetails.NONE;
    ResultContinuation next = null;
    do {
      ResultSegment<CloudQueue> page =
          service.listQueuesSegmented(text("prefix"), details, number("page_size"), next, null, null);
      pages.add(page.getResults().stream().map(CloudQueue::getName).collect(Collectors.toList()));
      page.getResults().forEach(queue -> metadata.add(queue.getMetadata()));
      next = page.getContinuationToken();
    } while (next != null);
    return Map.of("pages", pages, "metadata", metadata);
  }

  private Map<String, Object> getServiceProperties(CloudQueueClient service) throws Exception {
    ServiceProperties found = service.downloadServiceProperties();
    List<Object> rules = new ArrayList<>();
    for (CorsRule rule : found.getCors().getCorsRules()) {
      rules.add(Map.of("origins", String.join(",", rule.getAllowedOrigins()),
          "methods", rule.getAllowedMethods().stream().map(Enum::name).collect(Collectors.joining(",")),
          "max_age", rule.getMaxAgeInSeconds()));
    }
    return Map.of("cors", rules, "logging_days", found.getLogging().getRetentionIntervalInDays());
  }

  private ServiceProperties serviceProperties() {
    ServiceProperties properties = new ServiceProperties();
    properties.getLogging().setLogOperationTypes(EnumSet.of(LoggingOperations.READ));
    properties.getLogging().setRetentionIntervalInDays(number("logging_days"));
    for (JsonNode one : step.get("cors")) {
      CorsRule rule = new CorsRule();
      rule.setAllowedOrigins(List.of(one.get("origins").asText().split(",")));
      rule.setAllowedMethods(EnumSet.of(CorsHttpMethods.valueOf(one.get("methods").asText())));
      rule.setAllowedHeaders(List.of("*"));
      rule.setExposedHeaders(List.of("*"));
      rule.setMaxAgeInSeconds(one.get("max_age").asInt());
      properties.getCors().getCorsRules().add(rule);
    }
    return properties;
  }

  private Map<String, Object> getQueueAcl(CloudQueue queue) throws Exception {
    List<Object> policies = new ArrayList<>();
    queue.downloadPermissions().getSharedAccessPolicies().forEach((id, policy) -> policies.add(Map.of(
        "id", id, "permissions", policy.permissionsToString(),
        "start", policy.getSharedAccessStartTime().toInstant().toString(),
        "expiry", policy.getSharedAccessExpiryTime().toInstant().toString())));
    return Map.of("policies", policies);
  }

  private QueuePermissions policies() {
    QueuePermissions permissions = new QueuePermissions();
    for (JsonNode one : step.get("policies")) {
      SharedAccessQueuePolicy policy = new SharedAccessQueuePolicy();
      policy.setPermissionsFromString(one.get("permissions").asText());
      policy.setSharedAccessStartTime(Date.from(Instant.parse(one.get("start").asText())));
      policy.setSharedAccessExpiryTime(Date.from(Instant.parse(one.get("expiry").asText())));
      permissions.getSharedAccessPolicies().put(one.get("id").asText(), policy);
    }
    return permissions;
  }

  private Map<String, Object> putMessage(CloudQueue queue) throws Exception {
    CloudQueueMessage message = isBinary() ? new CloudQueueMessage(Base64.getDecoder().decode(text("text")))
        : new CloudQueueMessage(text("text"));
    queue.addMessage(message, number("ttl"), number("visibility"), null, null);
    return Map.of("id", message.getMessageId(), "receipt", message.getPopReceipt(),
        "expires", message.getExpirationTime().toInstant().atZone(ZoneOffset.UTC).getYear());
  }

  private Map<String, Object> messages(Iterable<CloudQueueMessage> found, boolean haveReceipts) throws Exception {
    List<Object> messages = new ArrayList<>();
    for (CloudQueueMessage one : found) {
      String text = isBinary() ? Base64.getEncoder().encodeToString(one.getMessageContentAsByte())
          : one.getMessageContentAsString();
      Map<String, Object> message = new HashMap<>(Map.of(
          "id", one.getMessageId(), "text", text == null ? "" : text, "dequeue_count", one.getDequeueCount()));
      if (haveReceipts) message.put("receipt", one.getPopReceipt());
      messages.add(message);
    }
    return Map.of("messages", messages);
  }

  private Map<String, Object> updateMessage(CloudQueue queue) throws Exception {
    CloudQueueMessage message = new KnownMessage(text("id"), text("receipt"));
    message.setMessageContent(text("text"));
    queue.updateMessage(message, number("visibility"),
        EnumSet.of(MessageUpdateFields.VISIBILITY, MessageUpdateFields.CONTENT), null, null);
    return Map.of("receipt", message.getPopReceipt());
  }

  private SharedAccessQueuePolicy queueSas() {
    if (step.hasNonNull("policy")) return null;
    SharedAccessQueuePolicy policy = new SharedAccessQueuePolicy();
    policy.setPermissionsFromString(text("permissions"));
    policy.setSharedAccessExpiryTime(Date.from(Instant.now().plusSeconds(3600)));
    return policy;
  }

  private Map<String, Object> makeAccountSas() throws Exception {
    SharedAccessAccountPolicy policy = new SharedAccessAccountPolicy();
    policy.setPermissionsFromString(text("permissions"));
    policy.setServiceFromString("q");
    policy.setResourceTypeFromString(text("types"));
    policy.setSharedAccessExpiryTime(Date.from(Instant.now().plusSeconds(3600)));
    return Map.of("sas", CloudStorageAccount.parse(System.getenv("CONNECTION")).generateSharedAccessSignature(policy));
  }
}
