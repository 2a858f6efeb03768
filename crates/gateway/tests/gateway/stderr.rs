//! What a child writes to standard error: for operators, and without its secrets.
#![cfg(unix)]

use serde_json::json;

use crate::scripted::Script;
use crate::support::{Gateway, serve, until};

const SECRETS: [&str; 5] = ["hunter2", "pa55", "t0k3n", "ada", "p0sitional"];

#[tokio::test]
async fn last_words_are_for_operators_only_and_without_secrets() {
    let shop = Script {
        call: r#"echo "famous $PLAIN, no $SHOP_URL: pa55, token=t0k3n" >&2; exit 7"#,
        ..Script::counting(&json!([{"name": "pay", "inputSchema": {"type": "object"}}]))
    };
    let shop = shop.server("shop");
    let config = format!(
        "[servers.orders]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n\
         {shop}era = \"legacy\"\ninstances = \"shared\"\n\
         [servers.shop.env]\nPLAIN = \"hunter2\"\nSHOP_URL = \"postgres://ada:pa55@db/shop\"\n\
         [servers.dead]\ncommand = \"sh\"\nargs = ['-c', 'echo \"famous $PLAIN $0\" >&2; exit 5', '${{env:KEY}}']\n\
         [servers.dead.env]\nPLAIN = \"hunter2\"\n"
    );
    let (mut command, _file) = serve(&config);
    command.args(["--log", "debug"]).env("KEY", "p0sitional");
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
        let shown = if is_told { "exit status: 5" } else { "dead" };
        let body = until(&url, || async {
            let (_, body) = gateway.get_url(&url).await;
            body.contains(shown).then_some(body)
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
