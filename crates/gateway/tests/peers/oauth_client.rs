//! Logs in to a gateway through rmcp's OAuth client, as an agent would, and steps up when a call
//! needs more. `scripts/interop.sh oauth` runs it, with an authorization server that asks nothing.
//!
//! Usage: `oauth_client URL`. Prints a line a check. `INTEROP_DIR` is the sandbox of the server
//! `files`; `INTEROP_TOKENS` is where tokens go, a line each.
#![expect(clippy::print_stdout, reason = "lines are what it is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Debug;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{
    AuthClient, AuthorizationCallback, AuthorizationRequest, OAuthState, OAuthTokenResponse,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use url::Url;

type Outcome<T> = Result<T, Box<dyn Error>>;

const CALLBACK: &str = "http://127.0.0.1:1/callback";

fn check(name: &str, right: bool, seen: impl Debug) {
    match right {
        true => println!("ok {name}"),
        false => println!("FAIL {name}: {seen:?}"),
    }
}

/// Follows redirects with cookies, as a browser does, until one leads back to the client.
async fn browse(http: &reqwest::Client, at: &str) -> Outcome<AuthorizationCallback> {
    let mut cookies = BTreeMap::new();
    let mut next = Url::parse(at)?;
    for _ in 0..20 {
        if next.as_str().starts_with(CALLBACK) {
            return Ok(AuthorizationCallback::from_redirect_url(next.as_str())?);
        }
        let all: Vec<_> = cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let request = http.get(next.clone()).header(COOKIE, all.join("; "));
        let answer = request.send().await?;
        for set in answer.headers().get_all(SET_COOKIE) {
            let set = set.to_str()?;
            let pair = set.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let location = answer.headers().get(LOCATION).ok_or("no redirect")?;
        next = next.join(location.to_str()?)?;
    }
    Err("no end of redirects".into())
}

/// Notes the tokens that the client has now.
fn note(tokens: &OAuthTokenResponse) -> Outcome<()> {
    let tokens = serde_json::to_value(tokens)?;
    let path = std::env::var("INTEROP_TOKENS")?;
    let mut file = OpenOptions::new().append(true).open(path)?;
    for name in ["access_token", "refresh_token"] {
        if let Some(token) = tokens[name].as_str() {
            writeln!(file, "{token}")?;
        }
    }
    Ok(())
}

type Client = RunningService<RoleClient, ()>;

async fn call(client: &Client, tool: &'static str, arguments: &Value) -> Outcome<String> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let answer = client.call_tool(params).await?;
    Ok(serde_json::to_string(&answer.content)?)
}

async fn run(url: &str) -> Outcome<()> {
    let folder = std::env::var("INTEROP_DIR")?;
    let http = reqwest::Client::builder()
        .redirect(Policy::none())
        .build()?;
    let transport = || {
        let config = StreamableHttpClientTransportConfig::with_uri(url);
        StreamableHttpClientTransport::with_client(http.clone(), config)
    };
    let Err(refused) = ().serve(transport()).await else {
        return Err("connected without a token".into());
    };
    let challenge = refused.auth_challenge().ok_or("no challenge")?.to_owned();
    check("connecting needs a login", true, ());

    let mut state = OAuthState::new(url, None).await?;
    let request = AuthorizationRequest::new(CALLBACK)
        .with_client_name("rmcp")
        .with_challenge(challenge);
    state.start_authorization(request).await?;
    let login = state.get_authorization_url().await?;
    let asked: BTreeMap<_, _> = Url::parse(&login)?.query_pairs().into_owned().collect();
    let has = |name: &str, value: &str| asked.get(name).is_some_and(|is| is == value);
    let is_for_us = has("resource", url) && has("code_challenge_method", "S256");
    check("the login is for the gateway, with PKCE", is_for_us, &asked);
    let back = browse(&http, &login).await?;
    let (code, csrf) = (&back.code, &back.csrf_token);
    let issuer = back.issuer.as_deref();
    state
        .handle_callback_with_issuer(code, csrf, issuer)
        .await?;
    let manager = state.into_authorization_manager().ok_or("no login")?;
    let client = AuthClient::new(http.clone(), manager);
    let manager = client.auth_manager.clone();
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let client = ().serve(transport).await?;
    let tools = client.list_all_tools().await?;
    let is_listed = tools
        .iter()
        .any(|tool| tool.name == "files__read_text_file");
    check("tools are listed", is_listed, &tools);
    let file = json!({"path": format!("{folder}/a.txt")});
    let read = async || call(&client, "files__read_text_file", &file).await;
    let text = read().await?;
    check("a read runs", text.contains("first"), &text);

    let made = json!({"path": format!("{folder}/of-rmcp")});
    let write = async || call(&client, "files__create_directory", &made).await;
    let refused = write().await.err().ok_or("a write runs with tools:read")?;
    check(
        "a write needs a login",
        format!("{refused:?}").contains("tools:write"),
        &refused,
    );
    let manager = manager.lock().await;
    let login = manager
        .request_scope_upgrade("tools:read tools:write")
        .await?;
    let back = browse(&http, &login).await?;
    let (code, csrf) = (&back.code, &back.csrf_token);
    let issuer = back.issuer.as_deref();
    note(
        &manager
            .exchange_code_for_token_with_issuer(code, csrf, issuer)
            .await?,
    )?;
    drop(manager);
    let text = write().await?;
    check("the write runs after it", text.contains("of-rmcp"), &text);
    client.cancel().await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // the only provider there is
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = std::env::args().nth(1).unwrap_or_default();
    let outcome = run(&url).await;
    check("runs to its end", outcome.is_ok(), outcome.as_ref().err());
    ExitCode::from(u8::from(outcome.is_err()))
}
