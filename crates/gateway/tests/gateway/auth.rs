//! `[auth]`: keys that commands create and revoke while the gateway runs.

use std::path::Path;

use reqwest::header::AUTHORIZATION;
use reqwest::{Request, StatusCode};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

use crate::audit::records;
use crate::support::{Gateway, callward, http, sample, serve, text, until, within};

const ORDER: &str = "orders__get_order";

/// Runs `callward keys` beside a gateway; returns standard output and standard error.
pub(crate) async fn keys(gateway: &Gateway, args: &[&str]) -> (String, String) {
    let args = [&["keys"], args, &["--config", gateway.config()]].concat();
    let mut command = callward(&args);
    command.env("CALLWARD_STATE_DIR", gateway.state.path());
    let done = within("the command", command.output()).await.unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    (text(&done.stdout).into(), text(&done.stderr).into())
}

fn request(gateway: &Gateway, headers: &[&str]) -> Request {
    let call = gateway.mcp_request(ORDER, &json!({"order_id": 1}), &json!({}));
    let add = |call: reqwest::RequestBuilder, header: &&str| call.header(AUTHORIZATION, *header);
    headers.iter().fold(call, add).build().unwrap()
}

/// Returns the status of an answer, and its challenge.
async fn asked(request: Request) -> (StatusCode, String) {
    let answer = within("an answer", http().execute(request)).await.unwrap();
    let challenge = answer.headers().get("www-authenticate");
    let challenge = challenge.map(|value| value.to_str().unwrap().to_owned());
    (answer.status(), challenge.unwrap_or_default())
}

/// Asks until the gateway has seen a change of its keys.
async fn until_status(gateway: &Gateway, key: &str, status: StatusCode) {
    let header = format!("Bearer {key}");
    until("the change of the keys", || async {
        let (found, _) = asked(request(gateway, &[&header])).await;
        (found == status).then_some(())
    })
    .await;
}

/// Fails if a file below a folder has the text.
pub(crate) fn has_no(folder: &Path, secret: &str) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            has_no(&path, secret);
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}

#[tokio::test]
async fn clients_need_a_key_that_is_valid_now() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let config = format!(
        "[auth]\nkeys = true\n[audit]\npath = {log:?}\nopen_world_path = {log:?}\nrecord = \"all\"\n{}",
        sample("orders")
    );
    let (mut command, file) = serve(&config);
    command.env("CALLWARD_LOG", "debug");
    let gateway = Gateway::started(command, Some(file), None).await;
    let found = asked(request(&gateway, &[])).await;
    assert_eq!(found, (StatusCode::UNAUTHORIZED, "Bearer".to_owned()));

    let (key, said) = keys(&gateway, &["create", "ci", "--role", "dev"]).await;
    let key = key.strip_suffix('\n').unwrap();
    assert!(
        key.starts_with("cwk_") && !key.contains('\n') && !said.contains(key),
        "{said}"
    );
    until_status(&gateway, key, StatusCode::OK).await;

    let good = format!("Bearer {key}");
    let wrong = good.replace("cwk_", "cwk_a");
    let long = format!("Bearer {}", "a".repeat(8 * 1024 + 1));
    for headers in [
        &[&*wrong][..],
        &["Bearer a.b.c"],
        &["Bearer "],
        &["Basic YTpi"],
        &[key],
        &[&long],
        &[&good, &good],
    ] {
        let found = asked(request(&gateway, headers)).await;
        let expected = "Bearer error=\"invalid_token\"".to_owned();
        assert_eq!(found, (StatusCode::UNAUTHORIZED, expected), "{headers:?}");
    }
    for query in ["access_token=a", &format!("key={key}")] {
        let mut request = request(&gateway, &[&good]);
        request.url_mut().set_query(Some(query));
        assert_eq!(asked(request).await.0, StatusCode::UNAUTHORIZED);
    }
    let counted = |reason: &str, count: u32| {
        format!("callward_auth_refusals_total{{callward_reason=\"{reason}\"}} {count}")
    };
    let counts = [
        counted("missing", 1),
        counted("malformed", 3),
        counted("scheme", 2),
        counted("too_long", 1),
    ];
    gateway
        .measures(&counts.each_ref().map(String::as_str))
        .await;

    let config = StreamableHttpClientTransportConfig::with_uri(gateway.url.as_str());
    let transport = StreamableHttpClientTransport::with_client(http(), config.auth_header(key));
    let client = within("connecting", ().serve(transport)).await.unwrap();
    let tools = within("the list", client.list_all_tools()).await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == ORDER));
    let order = json!({"order_id": 2}).as_object().cloned().unwrap();
    let call = CallToolRequestParams::new(ORDER).with_arguments(order);
    let answer = within("the call", client.call_tool(call)).await.unwrap();
    assert_ne!(answer.is_error, Some(true), "{answer:?}");
    within("the end", client.cancel()).await.unwrap();

    let (revoked, _) = keys(&gateway, &["revoke", "ci", "--json"]).await;
    let id = serde_json::from_str::<Value>(&revoked).unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    until_status(&gateway, key, StatusCode::UNAUTHORIZED).await;

    let state = gateway.state.clone();
    let said = gateway.stopped().await;
    // at warn level, once for each of these reasons
    let refused = said
        .lines()
        .filter(|line| line.contains("a request is refused"));
    for line in refused.clone() {
        assert!(
            line.contains("WARN") && line.contains("peer=127.0.0.1"),
            "{line}"
        );
    }
    let reasons = "missing unknown_key malformed scheme too_long several revoked";
    assert_eq!(refused.count(), reasons.split(' ').count(), "{said}");
    let body = &key[4..];
    assert!(!said.contains(body), "{said}");
    has_no(state.path(), body);
    has_no(folder.path(), body);
    let principals = records(&log, "call");
    assert!(!principals.is_empty());
    for record in principals {
        assert_eq!(record["principal"], format!("key#{id}"), "{record}");
    }
}

#[tokio::test]
async fn a_proxy_names_users_from_a_listed_address_alone() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let config = |peer: &str| {
        format!(
            "[auth.proxy]\nheader = \"x-forwarded-user\"\npeers = [{peer:?}]\n[audit]\npath = \
             {log:?}\nopen_world_path = {log:?}\nrecord = \"all\"\n{}",
            sample("orders")
        )
    };
    for (peer, listed) in [("127.0.0.1", true), ("10.0.0.0/8", false)] {
        let gateway = Gateway::configured(&config(peer)).await;
        let status = async |users: &[&str]| {
            let call = gateway.mcp_request(ORDER, &json!({"order_id": 1}), &json!({}));
            let call = call.header("x-forwarded-for", "127.0.0.1, 10.0.0.1");
            let add =
                |call: reqwest::RequestBuilder, user: &&str| call.header("x-forwarded-user", *user);
            let call = users.iter().fold(call, add);
            within("an answer", call.send())
                .await
                .unwrap()
                .status()
                .as_u16()
        };
        assert_eq!(status(&["ada"]).await, if listed { 200 } else { 401 });
        assert_eq!(status(&["ada", "ada"]).await, 401);
        assert_eq!(status(&[]).await, 401);
        let counted = |reason: &str, count: u32| {
            format!("callward_auth_refusals_total{{callward_reason=\"{reason}\"}} {count}")
        };
        let (several, untrusted) = if listed { (1, 0) } else { (0, 2) };
        let counts = [
            counted("missing", 1),
            counted("several", several),
            counted("untrusted_peer", untrusted),
        ];
        let counts = counts.each_ref().map(String::as_str);
        gateway.measures(&counts).await;
        gateway.stopped().await;
    }
    let calls = records(&log, "call");
    let principals: Vec<_> = calls.iter().map(|call| &call["principal"]).collect();
    assert_eq!(principals, ["proxy#ada"]);
}
