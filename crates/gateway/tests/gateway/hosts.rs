//! Requests whose host is foreign, malformed or given twice, on every route of both listeners.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Gateway, within};

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
