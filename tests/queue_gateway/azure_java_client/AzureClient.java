// azure-storage-queue of Java as a client of scenarios_test.py: reads an operation in JSON from each line of its
// input, does it by the SDK, and writes what the SDK answers. CONNECTION names the gateway; with OWN_RETRIES the SDK
// repeats calls as it does by itself.

import com.azure.core.util.BinaryData;
import com.azure.core.util.Context;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.common.policy.RequestRetryOptions;
import com.azure.storage.common.policy.RetryPolicyType;
import com.azure.storage.common.sas.AccountSasPermission;
import com.azure.storage.common.sas.AccountSasResourceType;
import com.azure.storage.common.sas.AccountSasService;
import com.azure.storage.common.sas.AccountSasSignatureValues;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueMessageEncoding;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.QueueServiceClientBuilder;
import com.azure.storage.queue.models.QueueAccessPolicy;
import com.azure.storage.queue.models.QueueAnalyticsLogging;
import com.azure.storage.queue.models.QueueCorsRule;
import com.azure.storage.queue.models.QueueProperties;
import com.azure.storage.queue.models.QueueRetentionPolicy;
import com.azure.storage.queue.models.QueueServiceProperties;
import com.azure.storage.queue.models.QueueSignedIdentifier;
import com.azure.storage.queue.models.QueueStorageException;
import com.azure.storage.queue.models.QueuesSegmentOptions;
import com.azure.storage.queue.sas.QueueSasPermission;
import com.azure.storage.queue.sas.QueueServiceSasSignatureValues;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

public class AzureClient {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, String> SETTINGS = new HashMap<>();

  private final JsonNode step;

  private AzureClient(JsonNode step) {
    this.step = step;
  }

  public static void main(String[] arguments) throws Exception {
    for (String pair : System.getenv("CONNECTION").split(";")) {
      SETTINGS.put(pair.split("=", 2)[0], pair.split("=", 2)[1]);
    }
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      System.out.write(JSON.writeValueAsBytes(new AzureClient(JSON.readTree(line)).answer()));
      System.out.println();
      System.out.flush();
    }
    System.exit(0); // it keeps threads
  }

  private Map<String, Object> answer() throws Exception {
    try {
      return run();
    } catch (QueueStorageException error) {
      return Map.of("refused", error.getStatusCode() + " " + error.getErrorCode());
    }
  }

  private Map<String, Object> run() throws Exception {
    switch (text("do")) {
      case "ListQueues": return listQueues();
      case "GetServiceProperties": return getServiceProperties();
      case "SetServiceProperties": service().setProperties(serviceProperties()); return Map.of();
      case "GetServiceStats":
        return Map.of("status", service().getStatistics().getGeoReplication().getStatus().toString());
      case "CreateQueue": queue().createWithResponse(metadata(), null, Context.NONE); return Map.of();
      case "DeleteQueue": queue().delete(); return Map.of();
      case "GetQueueMetadata":
        QueueProperties found = queue().getProperties();
        return Map.of("metadata", found.getMetadata(), "count", found.getApproximateMessagesCountLong());
      case "SetQueueMetadata": queue().setMetadata(metadata()); return Map.of();
      case "GetQueueAcl": return getQueueAcl();
      case "SetQueueAcl": queue().setAccessPolicy(policies()); return Map.of();
      case "PutMessage": return putMessage();
      case "GetMessages": return getMessages();
      case "PeekMessages": return peekMessages();
      case "UpdateMessage":
        return Map.of("receipt", queue().updateMessage(
            text("id"), text("receipt"), text("text"), seconds("visibility")).getPopReceipt());
      case "DeleteMessage": queue().deleteMessage(text("id"), text("receipt")); return Map.of();
      case "ClearMessages": queue().clearMessages(); return Map.of();
      case "MakeQueueSas": return Map.of("sas", queue().generateSas(queueSas()));
      case "MakeAccountSas":
        return Map.of("sas", service().generateAccountSas(new AccountSasSignatureValues(
            OffsetDateTime.now().plusHours(1), AccountSasPermission.parse(text("permissions")),
            AccountSasService.parse("q"), AccountSasResourceType.parse(text("types")))));
      case "Version": return version();
      default: throw new IllegalArgumentException(text("do"));
    }
  }

  private String text(String name) {
    return step.hasNonNull(name) ? step.get(name).asText() : null;
  }

  private Duration seconds(String name) {
    return step.hasNonNull(name) ? Duration.ofSeconds(step.get(name).asLong()) : null;
  }

  private boolean isEncoded(String encoding) {
    return encoding.equals(text("encode"));
  }

  @SuppressWarnings("unchecked")
  private Map<String, String> metadata() {
    return step.hasNonNull("metadata") ? JSON.convertValue(step.get("metadata"), Map.class) : null;
  }

  private QueueServiceClient service() {
    QueueServiceClientBuilder builder = new QueueServiceClientBuilder().messageEncoding(
        step.hasNonNull("encode") ? QueueMessageEncoding.BASE64 : QueueMessageEncoding.NONE);
    if (System.getenv("OWN_RETRIES") == null) {
      builder.retryOptions(new RequestRetryOptions(RetryPolicyType.FIXED, 1, (Duration) null, null, null, null));
    }
    if (step.hasNonNull("with")) {
      return builder.endpoint(SETTINGS.get("QueueEndpoint")).sasToken(text("with")).buildClient();
    }
    if (text("do").equals("GetServiceStats")) {
      return builder.endpoint(SETTINGS.get("QueueSecondaryEndpoint")).credential(new StorageSharedKeyCredential(
          SETTINGS.get("AccountName"), SETTINGS.get("AccountKey"))).buildClient();
    }
    return builder.connectionString(System.getenv("CONNECTION")).buildClient();
  }

  private QueueClient queue() {
    return service().getQueueClient(text("queue"));
  }

  private Map<String, Object> listQueues() {
    QueuesSegmentOptions options = new QueuesSegmentOptions().setPrefix(text("prefix"))
        .setIncludeMetadata(step.path("metadata").asBoolean()).setMaxResultsPerPage(step.get("page_size").asInt());
    List<Object> pages = new ArrayList<>();
    List<Object> metadata = new ArrayList<>();
    service().listQueues(options, null, Context.NONE).iterableByPage().forEach(page -> {
      List<String> names = new ArrayList<>();
      page.getValue().forEach(queue -> {
        names.add(queue.getName());
        metadata.add(queue.getMetadata());
      });
      pages.add(names);
    });
    return Map.of("pages", pages, "metadata", metadata);
  }

  private Map<String, Object> getServiceProperties() {
    QueueServiceProperties found = service().getProperties();
    List<Object> rules = new ArrayList<>();
    for (QueueCorsRule rule : found.getCors()) {
      rules.add(Map.of("origins", rule.getAllowedOrigins(), "methods", rule.getAllowedMethods(),
          "max_age", rule.getMaxAgeInSeconds()));
    }
    return Map.of("cors", rules, "logging_days", found.getAnalyticsLogging().getRetentionPolicy().getDays());
  }

  private QueueServiceProperties serviceProperties() {
    List<QueueCorsRule> rules = new ArrayList<>();
    for (JsonNode rule : step.get("cors")) {
      rules.add(new QueueCorsRule().setAllowedOrigins(rule.get("origins").asText())
          .setAllowedMethods(rule.get("methods").asText()).setAllowedHeaders("*").setExposedHeaders("*")
          .setMaxAgeInSeconds(rule.get("max_age").asInt()));
    }
    return new QueueServiceProperties().setCors(rules).setAnalyticsLogging(new QueueAnalyticsLogging()
        .setVersion("1.0").setRead(true).setRetentionPolicy(
            new QueueRetentionPolicy().setEnabled(true).setDays(step.get("logging_days").asInt())));
  }

  private Map<String, Object> getQueueAcl() {
    List<Object> policies = new ArrayList<>();
    for (QueueSignedIdentifier one : queue().getAccessPolicy()) {
      QueueAccessPolicy policy = one.getAccessPolicy();
      policies.add(Map.of("id", one.getId(), "permissions", policy.getPermissions(),
          "start", policy.getStartsOn().toInstant().toString(),
          "expiry", policy.getExpiresOn().toInstant().toString()));
    }
    return Map.of("policies", policies);
  }

  private List<QueueSignedIdentifier> policies() {
    List<QueueSignedIdentifier> policies = new ArrayList<>();
    for (JsonNode one : step.get("policies")) {
      policies.add(new QueueSignedIdentifier().setId(one.get("id").asText()).setAccessPolicy(new QueueAccessPolicy()
          .setPermissions(one.get("permissions").asText()).setStartsOn(OffsetDateTime.parse(one.get("start").asText()))
          .setExpiresOn(OffsetDateTime.parse(one.get("expiry").asText()))));
    }
    return policies;
  }

  private Map<String, Object> putMessage() {
    BinaryData body = isEncoded("BinaryBase64") ? BinaryData.fromBytes(Base64.getDecoder().decode(text("text")))
        : BinaryData.fromString(text("text"));
    var put = queue().sendMessageWithResponse(
        body, seconds("visibility"), seconds("ttl"), null, Context.NONE).getValue();
    return Map.of("id", put.getMessageId(), "receipt", put.getPopReceipt(),
        "expires", put.getExpirationTime().getYear());
  }

  // An empty text is none to this SDK.
  private String shown(BinaryData body) {
    if (body == null) return "";
    return isEncoded("BinaryBase64") ? Base64.getEncoder().encodeToString(body.toBytes()) : body.toString();
  }

  private Map<String, Object> getMessages() {
    List<Object> messages = new ArrayList<>();
    queue().receiveMessages(step.get("count").asInt(), seconds("visibility"), null, Context.NONE).forEach(
        one -> messages.add(Map.of("id", one.getMessageId(), "text", shown(one.getBody()),
            "receipt", one.getPopReceipt(), "dequeue_count", one.getDequeueCount())));
    return Map.of("messages", messages);
  }

  private Map<String, Object> peekMessages() {
    List<Object> messages = new ArrayList<>();
    queue().peekMessages(step.get("count").asInt(), null, Context.NONE).forEach(
        one -> messages.add(Map.of("id", one.getMessageId(), "text", shown(one.getBody()),
            "dequeue_count", one.getDequeueCount())));
    return Map.of("messages", messages);
  }

  private QueueServiceSasSignatureValues queueSas() {
    if (step.hasNonNull("policy")) return new QueueServiceSasSignatureValues(text("policy"));
    return new QueueServiceSasSignatureValues(
        OffsetDateTime.now().plusHours(1), QueueSasPermission.parse(text("permissions")));
  }

  private static Map<String, Object> version() throws Exception {
    Properties properties = new Properties();
    properties.load(QueueClient.class.getResourceAsStream("/azure-storage-queue.properties"));
    return Map.of("version", properties.getProperty("version"));
  }
}
