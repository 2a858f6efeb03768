//! What a child writes to standard error: for operators, and without its secrets.
#![cfg(unix)]

use serde_json::json;

use crate::support::{CALLWARD, Gateway, callward, file, until};

/// Lists one tool as a legacy server, and dies of the call with secrets in its last words.
const DIES_OF_A_CALL: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shop","version":"1"}}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"pay","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) echo "famous $PLAIN, no $SHOP_URL: pa55, token=t0k3n" >&2; exit 7 ;;
  esac
done"#;

const SECRETS: [&str; 5] = ["hunter2", "pa55", "t0k3n", "ada", "p0sitional"];

#[tokio::test]
async fn last_words_are_for_operators_only_and_without_secrets() {
    let config = format!(
        "[servers.orders]\ncommand = {CALLWARD:?}\nargs = [\"sample\"]\n\
         [servers.shop]\ncommand = \"sh\"\nera = \"legacy\"\nargs = ['-c', '''{DIES_OF_A_CALL}''']\n\
         instances = \"shared\"\n\
         [servers.shop.env]\nPLAIN = \"hunter2\"\nSHOP_URL = \"postgres://ada:pa55@db/shop\"\n\
         [servers.dead]\ncommand = \"sh\"\nargs = ['-c', 'echo \"famous $PLAIN $0\" >&2; exit 5', '${{env:KEY}}']\n\
         [servers.dead.env]\nPLAIN = \"hunter2\"\n"
    );
    let config = file(config);
    let path = config.path().to_str().unwrap();
    let serve = [
        "serve",
        "--json",
        "--http",
        "127.0.0.1:0",
        "--log",
        "debug",
        "--config",
        path,
    ];
    let mut command = callward(&serve);
    command.env("KEY", "p0sitional");
    let gateway = Gateway::starting(command, None, None).await;
    let failed = until("the loss of the call", || async {
        let answer = gateway.mcp("shop__pay", json!({})).await.to_string();
        answer.contains("exit status: 7").then_some(answer)
    })
    .await;
    assert!(!failed.contains("famous"), "{failed}");

    for (url, is_told) in [
        (gateway.public("/readyz"), false),
        (gateway.at("/readyz"), true),
        (gateway.at("/api/servers"), true),
        (gateway.at("/api/missing"), true),
    ] {
        let body = until(&url, || async {
            let (_, body) = gateway.get_url(&url).await;
            body.contains("dead").then_some(body)
        })
        .await;
        assert_eq!(body.contains("famous [redacted]"), is_told, "{url}: {body}");
        assert_eq!(body.contains("exit status: 5"), is_told, "{url}: {body}");
        for secret in SECRETS {
            assert!(!body.contains(secret), "{secret} at {url}: {body}");
        }
    }
    for secret in SECRETS {
        assert!(!failed.contains(secret), "{secret} in {failed}");
    }
    let said = gateway.stopped().await;
    let lines = said.lines().filter(|line| line.contains("famous"));
    assert!(lines.count() > 1, "{said}");
    for secret in SECRETS {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}
