//! Requests whose host is foreign or given twice, and those of web pages.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Gateway, http, sample, within};

/// Sends a request as it is written, and returns the status of its answer.
async fn status(url: &str, token: &str, target: &str, hosts: &[&str], body: &str) -> u16 {
    let method = if body.is_empty() { "GET" } else { "POST" };
    let hosts: String = hosts
        .iter()
        .map(|host| format!("host: {host}\r\n"))
        .collect();
    let request = format!(
        "{method} {target} HTTP/1.1\r\n{hosts}content-type: application/json\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let read = stream.read_to_string(&mut answer);
    within("the answer", read).await.unwrap();
    answer[9..12].parse().unwrap()
}

#[tokio::test]
async fn foreign_hosts_and_web_pages_are_refused_but_for_probes() {
    let config = format!(
        "[http]\nmetrics = true\n[admin]\nallowed_hosts = [\"admin.example\"]\n{}",
        sample("shop")
    );
    let gateway = Gateway::configured(&config).await;
    let (public, admin) = (gateway.public(""), gateway.at(""));
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (listener, path, body) in [
        (&public, "/mcp", ping),
        (&public, "/healthz", ""),
        (&public, "/readyz", ""),
        (&public, "/metrics", ""),
        (&admin, "/readyz", ""),
        (&admin, "/metrics", ""),
        (&admin, "/api/tools", ""),
        (&admin, "/api/cache/purge", r#"{"all":true}"#),
    ] {
        let named = |name: &str| format!("http://{name}{path}");
        for (target, hosts, expected) in [
            (path, &["localhost:1"][..], 200),
            (path, &["[::1]:80"], 200),
            (&named("localhost:1"), &["localhost:1"], 200),
            (path, &["localhost", "evil.example"], 403),
            (path, &["localhost:99999"], 403),
            (path, &[""], 403),
            (&named("evil.example"), &["localhost"], 403),
            (&named("evil.example"), &[], 403),
        ] {
            let status = status(listener, &gateway.token, target, hosts, body).await;
            assert_eq!(status, expected, "{listener} {target} {hosts:?}");
        }
    }

    let asked = async |request: reqwest::RequestBuilder, (name, value): (&str, &str)| {
        let answer = within(value, request.header(name, value).send()).await;
        answer.unwrap()
    };
    let evil = ("host", "evil.example");
    let page = ("origin", "http://localhost:3000");
    for (header, status) in [
        (("origin", "http://evil.example"), 403),
        (evil, 403),
        (page, 200),
    ] {
        let read = gateway.mcp_request("shop__get_order", &json!({"order_id": 1}), &json!({}));
        assert_eq!(asked(read, header).await.status(), status, "{header:?}");
    }
    let metrics = http().get(gateway.public("/metrics"));
    assert_eq!(asked(metrics, page).await.status(), 403);
    let refused = asked(http().get(gateway.at("/readyz")), evil).await;
    let said = refused.text().await.unwrap();
    let (host, key) = (r#"the Host \"evil.example\" is not"#, "`admin.listen`");
    assert!(said.contains(host) && said.contains(key), "{said}");
    // a probe may come by any address; what the servers said is not for it
    let ready = asked(http().get(gateway.public("/readyz")), evil).await;
    assert_eq!(ready.status(), 200);
    let body: Value = serde_json::from_str(&ready.text().await.unwrap()).unwrap();
    let is_short = body["ready"] == true && body.get("servers").is_none();
    assert!(is_short, "{body}");

    for (header, status) in [
        (page, 403),
        (("origin", "null"), 403),
        (("sec-fetch-site", "cross-site"), 403),
        (("sec-fetch-site", "same-site"), 403),
        // typed into the address bar
        (("sec-fetch-site", "none"), 200),
        (("host", "0.0.0.0:7421"), 403),
        (("host", "[::1]"), 200),
        (("host", "127.0.0.9"), 200),
        (("host", "admin.example:80"), 200),
    ] {
        for path in ["/api/tools", "/metrics", "/readyz", "/api/routes/events"] {
            let request = http().get(gateway.at(path)).bearer_auth(&gateway.token);
            let answer = asked(request, header).await;
            assert_eq!(answer.status(), status, "{path}, {header:?}");
            assert!(
                !answer
                    .headers()
                    .keys()
                    .any(|name| name.as_str().contains("access-control"))
            );
        }
        let purge = http()
            .post(gateway.at("/api/cache/purge"))
            .bearer_auth(&gateway.token);
        let answer = asked(purge.json(&json!({"all": true})), header).await;
        assert_eq!(answer.status(), status, "{header:?}");
    }
}
