//! azure_storage_queue of Rust as a client of scenarios_test.py: reads an operation in JSON from each line of its
//! input, does it by the SDK, and writes what the SDK answers. CONNECTION names the gateway, and ACCOUNT_SAS is what
//! the client has for a key: over HTTP this SDK takes nothing else. With TOKEN it has a bearer token, for HTTPS. With
//! OWN_RETRIES the SDK repeats calls as it does by itself.

use std::collections::HashMap;
use std::io::{stdin, BufRead};
use std::sync::Arc;

use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::ErrorKind;
use azure_core::http::{ClientOptions, RetryOptions, Url};
use azure_core::time::{parse_rfc3339, to_rfc3339, Duration, OffsetDateTime};
use azure_core::Result;
use azure_storage_queue::models::{
    AccessPolicy, CorsRule, ListQueuesIncludeType, Logging, QueueClientCreateOptions, QueueClientGetPropertiesResultHeaders,
    QueueClientPeekMessagesOptions, QueueClientReceiveMessagesOptions, QueueClientSendMessageOptions,
    QueueClientUpdateMessageOptions, QueueMessage, QueueServiceClientListQueuesOptions, QueueServiceProperties,
    RetentionPolicy, SignedIdentifier, SignedIdentifiers,
};
use azure_storage_queue::{QueueClient, QueueServiceClient, QueueServiceClientOptions};
use futures::TryStreamExt;
use serde_json::{json, Value};

#[derive(Debug)]
struct FixedToken(String);

#[async_trait::async_trait]
impl TokenCredential for FixedToken {
    async fn get_token(&self, _: &[&str], _: Option<TokenRequestOptions<'_>>) -> Result<AccessToken> {
        Ok(AccessToken::new(self.0.clone(), OffsetDateTime::now_utc() + Duration::hours(1)))
    }
}

fn token() -> Option<String> {
    std::env::var("TOKEN").ok()
}

fn is_lacking(operation: &str) -> bool {
    match operation {
        "MakeQueueSas" | "MakeAccountSas" => true,
        "GetQueueAcl" | "SetQueueAcl" => token().is_none(),
        _ => false,
    }
}

/// A setting of the connection string.
fn setting(name: &str) -> String {
    let connection = std::env::var("CONNECTION").unwrap();
    let pair = connection.split(';').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    pair.unwrap().to_string()
}

fn text(step: &Value, name: &str) -> String {
    step[name].as_str().unwrap_or_default().to_string()
}

fn number(step: &Value, name: &str) -> Option<i32> {
    step[name].as_i64().map(|number| number as i32)
}

fn metadata(step: &Value) -> Option<HashMap<String, String>> {
    serde_json::from_value(step["metadata"].clone()).ok()
}

fn service_of(endpoint: &str) -> Result<QueueServiceClient> {
    let sas = std::env::var("ACCOUNT_SAS").unwrap();
    let mut client_options = ClientOptions::default();
    if std::env::var("OWN_RETRIES").is_err() {
        client_options.retry = RetryOptions::none();
    }
    let options = QueueServiceClientOptions { client_options, ..Default::default() };
    if let Some(token) = token() {
        let credential = Arc::new(FixedToken(token));
        return QueueServiceClient::new(Url::parse(&setting(endpoint))?, Some(credential), Some(options));
    }
    QueueServiceClient::new(Url::parse(&format!("{}?{sas}", setting(endpoint)))?, None, Some(options))
}

async fn of_service(step: &Value, service: QueueServiceClient) -> Result<Value> {
    match step["do"].as_str().unwrap() {
        "ListQueues" => {
            let options = QueueServiceClientListQueuesOptions {
                prefix: Some(text(step, "prefix")),
                maxresults: number(step, "page_size"),
                include: step["metadata"].as_bool().map(|_| vec![ListQueuesIncludeType::Metadata]),
                ..Default::default()
            };
            let mut pager = service.list_queues(Some(options))?.into_pages();
            let (mut pages, mut metadata) = (vec![], vec![]);
            while let Some(page) = pager.try_next().await? {
                let queues = page.into_model()?.queue_items;
                pages.push(queues.iter().map(|queue| queue.name.clone()).collect::<Vec<_>>());
                metadata.extend(queues.into_iter().map(|queue| queue.metadata));
            }
            Ok(json!({"pages": pages, "metadata": metadata}))
        }
        "GetServiceProperties" => {
            let found = service.get_properties(None).await?.into_model()?;
            let rules: Vec<_> = found.cors.unwrap_or_default().into_iter().map(|rule| json!({
                "origins": rule.allowed_origins, "methods": rule.allowed_methods,
                "max_age": rule.max_age_in_seconds})).collect();
            let logging = found.logging.and_then(|logging| logging.retention_policy);
            Ok(json!({"cors": rules, "logging_days": logging.and_then(|policy| policy.days)}))
        }
        "SetServiceProperties" => {
            let rules = step["cors"].as_array().unwrap().iter().map(|rule| CorsRule {
                allowed_origins: Some(text(rule, "origins")),
                allowed_methods: Some(text(rule, "methods")),
                allowed_headers: Some("*".into()),
                exposed_headers: Some("*".into()),
                max_age_in_seconds: number(rule, "max_age"),
            });
            let retention_policy = Some(RetentionPolicy { enabled: Some(true), days: number(step, "logging_days") });
            let properties = QueueServiceProperties {
                cors: Some(rules.collect()),
                logging: Some(Logging {
                    version: Some("1.0".into()),
                    read: Some(true),
                    write: Some(false),
                    delete: Some(false),
                    retention_policy,
                }),
                ..Default::default()
            };
            service.set_properties(properties.try_into()?, None).await?;
            Ok(json!({}))
        }
        "GetServiceStats" => {
            let found = service_of("QueueSecondaryEndpoint")?.get_statistics(None).await?.into_model()?;
            let status = found.geo_replication.and_then(|replication| replication.status);
            Ok(json!({"status": status.map(|status| status.to_string())}))
        }
        other => panic!("what is {other}?"),
    }
}

async fn of_queue(step: &Value, queue: QueueClient) -> Result<Value> {
    match step["do"].as_str().unwrap() {
        "CreateQueue" => {
            let options = QueueClientCreateOptions { metadata: metadata(step), ..Default::default() };
            queue.create(Some(options)).await?;
        }
        "DeleteQueue" => {
            queue.delete(None).await?;
        }
        "GetQueueMetadata" => {
            let found = queue.get_properties(None).await?;
            return Ok(json!({"metadata": found.metadata()?, "count": found.approximate_messages_count()?}));
        }
        "SetQueueMetadata" => {
            queue.set_metadata(&metadata(step).unwrap_or_default(), None).await?;
        }
        "GetQueueAcl" => {
            let found = queue.get_access_policy(None).await?.into_model()?.items.unwrap_or_default();
            let policies: Vec<_> = found.into_iter().map(|one| {
                let policy = one.access_policy.unwrap_or_default();
                json!({"id": one.id, "permissions": policy.permission,
                       "start": policy.start.map(|time| to_rfc3339(&time)),
                       "expiry": policy.expiry.map(|time| to_rfc3339(&time))})
            }).collect();
            return Ok(json!({"policies": policies}));
        }
        "SetQueueAcl" => {
            queue.set_access_policy(policies(step)?.try_into()?, None).await?;
        }
        _ => return of_messages(step, queue).await,
    }
    Ok(json!({}))
}

fn policies(step: &Value) -> Result<SignedIdentifiers> {
    let mut items = vec![];
    for one in step["policies"].as_array().unwrap() {
        let access_policy = AccessPolicy {
            permission: Some(text(one, "permissions")),
            start: Some(parse_rfc3339(&text(one, "start"))?),
            expiry: Some(parse_rfc3339(&text(one, "expiry"))?),
        };
        items.push(SignedIdentifier { id: Some(text(one, "id")), access_policy: Some(access_policy) });
    }
    Ok(SignedIdentifiers { items: Some(items) })
}

async fn of_messages(step: &Value, queue: QueueClient) -> Result<Value> {
    let message = QueueMessage { message_text: Some(text(step, "text")) };
    match step["do"].as_str().unwrap() {
        "PutMessage" => {
            let options = QueueClientSendMessageOptions {
                message_time_to_live: number(step, "ttl"),
                visibility_timeout: number(step, "visibility"),
                ..Default::default()
            };
            let put = queue.send_message(message.try_into()?, Some(options)).await?.into_model()?.into_message()?;
            let expires = put.expiration_time.map(|time| time.year());
            Ok(json!({"id": put.message_id, "receipt": put.pop_receipt, "expires": expires}))
        }
        "GetMessages" => {
            let options = QueueClientReceiveMessagesOptions {
                number_of_messages: number(step, "count"),
                visibility_timeout: number(step, "visibility"),
                ..Default::default()
            };
            let got = queue.receive_messages(Some(options)).await?.into_model()?.items.unwrap_or_default();
            let messages: Vec<_> = got.into_iter().map(|one| json!({
                "id": one.message_id, "text": one.message_text.unwrap_or_default(), "receipt": one.pop_receipt,
                "dequeue_count": one.dequeue_count})).collect();
            Ok(json!({"messages": messages}))
        }
        "PeekMessages" => {
            let options = QueueClientPeekMessagesOptions {
                number_of_messages: number(step, "count"), ..Default::default() };
            let peeked = queue.peek_messages(Some(options)).await?.into_model()?.items.unwrap_or_default();
            let messages: Vec<_> = peeked.into_iter().map(|one| json!({
                "id": one.message_id, "text": one.message_text.unwrap_or_default(),
                "dequeue_count": one.dequeue_count})).collect();
            Ok(json!({"messages": messages}))
        }
        "UpdateMessage" => {
            let options = QueueClientUpdateMessageOptions {
                queue_message: Some(message.try_into()?), ..Default::default() };
            let visibility = number(step, "visibility").unwrap_or(0);
            let updated = queue.update_message(
                &text(step, "id"), &text(step, "receipt"), visibility, Some(options)).await?;
            // The SDK has no name for what this operation answers in headers.
            let receipt = updated.headers().get_optional_str(&"x-ms-popreceipt".into()).map(str::to_string);
            Ok(json!({"receipt": receipt}))
        }
        "DeleteMessage" => {
            queue.delete_message(&text(step, "id"), &text(step, "receipt"), None).await?;
            Ok(json!({}))
        }
        "ClearMessages" => {
            queue.clear(None).await?;
            Ok(json!({}))
        }
        other => panic!("what is {other}?"),
    }
}

fn version() -> Value {
    let lock = include_str!("../Cargo.lock");
    let (_, after) = lock.split_once("name = \"azure_storage_queue\"\nversion = \"").unwrap();
    json!({"version": after.split('"').next()})
}

async fn run(step: &Value) -> Result<Value> {
    let operation = step["do"].as_str().unwrap();
    if let Some(encoding) = step.get("encode") {
        return Ok(json!({"lacks": encoding}));
    }
    if is_lacking(operation) {
        return Ok(json!({"lacks": operation}));
    }
    if operation == "Version" {
        return Ok(version());
    }
    let service = service_of("QueueEndpoint")?;
    match step.get("queue") {
        None => of_service(step, service).await,
        Some(name) => of_queue(step, service.queue_client(name.as_str().unwrap())?).await,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    for line in stdin().lock().lines() {
        let step = serde_json::from_str(&line.unwrap()).unwrap();
        let answer = run(&step).await.unwrap_or_else(|error| match error.kind() {
            ErrorKind::HttpResponse { status, error_code, .. } => {
                json!({"refused": format!("{} {}", u16::from(*status), error_code.clone().unwrap_or_default())})
            }
            _ => panic!("{error}"),
        });
        println!("{answer}");
    }
}
