//! Requests whose host is foreign, malformed or given twice, and those of web pages.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Gateway, http, within};

const CONFIG: &str =
    "[http]\nmetrics = true\n[servers.shop]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n";

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PURGE: &str = r#"{"all":true}"#;

/// Sends a request as it is written, and returns the status of its answer.
async fn status(url: &str, target: &str, hosts: &[&str], body: &str) -> u16 {
    let address = url.trim_start_matches("http://");
    let method = if body.is_empty() { "GET" } else { "POST" };
    let hosts: String = hosts
        .iter()
        .map(|host| format!("host: {host}\r\n"))
        .collect();
    let request = format!(
        "{method} {target} HTTP/1.1\r\n{hosts}content-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let read = stream.read_to_string(&mut answer);
    within("the answer", read).await.unwrap();
    answer[9..12].parse().unwrap()
}

#[tokio::test]
async fn a_foreign_malformed_or_second_host_is_refused_on_every_route() {
    let gateway = Gateway::configured(CONFIG).await;
    let (public, admin) = (gateway.public(""), gateway.at(""));
    for (listener, path, body) in [
        (&public, "/mcp", PING),
        (&public, "/healthz", ""),
        (&public, "/readyz", ""),
        (&public, "/metrics", ""),
        (&admin, "/readyz", ""),
        (&admin, "/metrics", ""),
        (&admin, "/api/tools", ""),
        (&admin, "/api/cache/purge", PURGE),
    ] {
        let named = |name: &str| format!("http://{name}{path}");
        let with = async |target: &str, hosts: &[&str]| {
            let status = status(listener, target, hosts, body).await;
            format!("{status} {listener} {target} {hosts:?}")
        };
        for hosts in [&["localhost:1"][..], &["127.0.0.1"], &["[::1]:80"]] {
            let answer = with(path, hosts).await;
            assert!(answer.starts_with("200"), "{answer}");
        }
        let answer = with(&named("localhost:1"), &["localhost:1"]).await;
        assert!(answer.starts_with("200"), "{answer}");
        for (target, hosts) in [
            (path, &["localhost", "localhost"][..]),
            (path, &["localhost", "evil.example"]),
            (path, &["evil.example", "localhost"]),
            (path, &["localhost:99999"]),
            (path, &["localhost:+80"]),
            (path, &["localhost:80:80"]),
            (path, &["user@localhost"]),
            (path, &["local host"]),
            (path, &[""]),
            (&named("evil.example"), &["localhost"]),
            (&named("evil.example"), &["evil.example"]),
            (&named("evil.example"), &[]),
            (&named("localhost"), &["localhost", "localhost"]),
        ] {
            let answer = with(target, hosts).await;
            assert!(answer.starts_with("403"), "{answer}");
        }
    }
}

#[tokio::test]
async fn web_pages_and_foreign_hosts_are_refused_but_for_probes() {
    let gateway = Gateway::configured(CONFIG).await;
    let asked = async |request: reqwest::RequestBuilder, (name, value): (&str, &str)| {
        let answer = within(value, request.header(name, value).send()).await;
        answer.unwrap()
    };
    let (evil, page) = (
        ("host", "evil.example"),
        ("origin", "http://localhost:3000"),
    );
    let get = |url: String| http().get(url);
    for (header, status) in [
        (("origin", "http://evil.example"), 403),
        (evil, 403),
        (page, 200),
    ] {
        let read = gateway.mcp_request("shop__get_order", &json!({"order_id": 1}));
        assert_eq!(asked(read, header).await.status(), status, "{header:?}");
    }
    for header in [evil, page] {
        let metrics = get(gateway.public("/metrics"));
        assert_eq!(asked(metrics, header).await.status(), 403, "{header:?}");
    }
    let said = asked(get(gateway.at("/readyz")), evil)
        .await
        .text()
        .await
        .unwrap();
    let (host, key) = (r#"the Host \"evil.example\" is not"#, "`admin.listen`");
    assert!(said.contains(host) && said.contains(key), "{said}");
    // a probe may come by any address; what the servers said is not for it
    let ready = asked(get(gateway.public("/readyz")), evil).await;
    assert_eq!(ready.status(), 200);
    let body: Value = serde_json::from_str(&ready.text().await.unwrap()).unwrap();
    assert!(
        body["ready"] == true && body.get("servers").is_none(),
        "{body}"
    );

    for (header, status) in [
        (page, 403),
        (("origin", "null"), 403),
        (("sec-fetch-site", "cross-site"), 403),
        (("sec-fetch-site", "same-site"), 403),
        // typed into the address bar
        (("sec-fetch-site", "none"), 200),
        (evil, 403),
        (("host", "0.0.0.0:7421"), 403),
        (("host", "localhost:1"), 200),
        (("host", "[::1]"), 200),
    ] {
        for path in ["/api/tools", "/metrics", "/readyz", "/api/routes/events"] {
            let answer = asked(get(gateway.at(path)), header).await;
            assert_eq!(answer.status(), status, "{path}, {header:?}");
        }
        let purge = http().post(gateway.at("/api/cache/purge"));
        let answer = asked(purge.json(&json!({"all": true})), header).await;
        assert_eq!(answer.status(), status, "{header:?}");
    }
}
