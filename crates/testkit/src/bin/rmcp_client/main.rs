//! Uses each feature of MCP through rmcp; prints a line of JSON for each feature, with the calls,
//! the checks and the words of `scripts/interop/features.py`.
//!
//! Usage: `rmcp_client ERA stdio COMMAND ARGS...` or `rmcp_client ERA http URL`. ERA is `legacy` or
//! `modern`. The server is the fixture `conformance`.

mod features;
mod handler;

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use rmcp::model::{ClientConfig, Implementation, ProtocolVersion, TASKS_EXTENSION_ID};
use rmcp::service::{ClientCacheConfig, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceError};
use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

use crate::handler::Handler;

const USAGE: &str = "rmcp_client legacy|modern (stdio COMMAND ARGS... | http URL)";
const SECONDS: u64 = 15;

type Used<T = ()> = Result<T, Box<dyn Error>>;
type Client = RunningService<RoleClient, Handler>;

fn check(right: bool, words: impl Into<String>) -> Used {
    if !right {
        return Err(words.into().into());
    }
    Ok(())
}

/// A client of one era, which takes nothing from its cache.
async fn connected(version: ProtocolVersion, target: &[String]) -> Used<Client> {
    let mut capabilities =
        json!({"sampling": {}, "roots": {}, "elicitation": {"form": {}, "url": {}}});
    let mut lifecycle = ClientLifecycleMode::Initialize;
    if !version.has_initialize() {
        capabilities["extensions"] = json!({ TASKS_EXTENSION_ID: {} });
        let preferred_versions = vec![version.clone()];
        lifecycle = ClientLifecycleMode::Discover { preferred_versions };
    }
    let name = Implementation::new("callward-features", "1");
    let config = ClientConfig::new(serde_json::from_value(capabilities)?, name);
    let handler = Handler {
        config: config.with_protocol_version(version.clone()),
        ..Handler::default()
    };
    let client = match target {
        [way, url] if way == "http" => {
            // reqwest is built with TLS if other packages are built along, but with no provider
            _ = rustls::crypto::ring::default_provider().install_default();
            let transport = StreamableHttpClientTransport::from_uri(url.as_str());
            handler.serve_with_lifecycle(transport, lifecycle).await?
        }
        [way, program, arguments @ ..] if way == "stdio" => {
            let mut command = Command::new(program);
            command.args(arguments);
            let transport = TokioChildProcess::new(command)?;
            handler.serve_with_lifecycle(transport, lifecycle).await?
        }
        _ => return Err(USAGE.into()),
    };
    let agreed = client.peer_info().map(|info| info.protocol_version.clone());
    check(agreed.as_ref() == Some(&version), format!("{agreed:?}"))?;
    let cache = ClientCacheConfig::disabled();
    client.set_response_cache_config(cache).await;
    Ok(client)
}

fn words(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref() {
        Some(ServiceError::McpError(refusal)) => format!("{} {}", refusal.code.0, refusal.message),
        _ => error.to_string(),
    }
}

#[tokio::main]
async fn main() -> Used {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (era, target) = arguments.split_first().ok_or(USAGE)?;
    let version = match era.as_str() {
        "legacy" => ProtocolVersion::V_2025_11_25,
        "modern" => ProtocolVersion::V_2026_07_28,
        _ => return Err(USAGE.into()),
    };
    let client = connected(version, target).await?;
    let mut out = std::io::stdout();
    for (feature, used) in features::all(&client) {
        let answer = match timeout(Duration::from_secs(SECONDS), used).await {
            Ok(Ok(())) => "yes".to_owned(),
            Ok(Err(error)) => words(&*error),
            Err(_) => format!("no answer in {SECONDS} s"),
        };
        writeln!(out, "{}", json!({"feature": feature, "answer": answer}))?;
    }
    client.cancel().await?;
    Ok(())
}
