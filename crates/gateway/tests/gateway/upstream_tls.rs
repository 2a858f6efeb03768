//! Servers behind https, reached directly and through a proxy.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Gateway, callward, file, http_over, text, within};
use crate::tls::Own;

/// Lists the tools of a server with these variables set. Returns what it printed and wrote of
/// errors.
async fn tools(url: &str, variables: &[(&str, &str)], roots: &Path) -> (String, String) {
    let config = file(format!("[servers.far]\nurl = {url:?}\n"));
    let mut command = callward(&["tools", "--config", config.path().to_str().unwrap()]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command
        .env("SSL_CERT_FILE", roots)
        .env_remove("SSL_CERT_DIR");
    command.envs(variables.iter().copied());
    let output = within("the list", command.output()).await.unwrap();
    (text(&output.stdout).into(), text(&output.stderr).into())
}

/// Connects each client to this address, whatever it asks for. Returns the proxy's own address, and
/// what it is asked for.
async fn proxy(to: String) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let seen = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (to, seen) = (to.clone(), seen.clone());
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                stream.read_line(&mut line).await.unwrap();
                seen.lock().push(line.trim_end().to_owned());
                while line.trim_end() != "" {
                    line.clear();
                    stream.read_line(&mut line).await.unwrap();
                }
                stream.write_all(b"HTTP/1.1 200 x\r\n\r\n").await.unwrap();
                let mut server = TcpStream::connect(to).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    (address, asked)
}

#[tokio::test]
async fn https_servers_are_verified_directly_and_through_a_proxy() {
    let own = Own::named(&["127.0.0.1", "server.test"]);
    let client = http_over(own.client("http/1.1", None));
    let config = own.config("allowed_hosts = [\"server.test\", \"localhost\", \"127.0.0.1\"]");
    let (trusted, stranger) = (own.path("cert.pem"), Own::new());
    let gateway = Gateway::trusted(&config, client).await;
    let port = gateway.public("").rsplit(':').next().unwrap().to_owned();
    let (proxy, asked) = proxy(format!("127.0.0.1:{port}")).await;
    let (near, wrong, far) = (
        format!("https://127.0.0.1:{port}/mcp"),
        format!("https://localhost:{port}/mcp"),
        "https://server.test/mcp",
    );
    let unknown = stranger.path("cert.pem");
    let through = format!("http://me:secret@{proxy}");
    for (url, variables, roots, error) in [
        (&near[..], &[][..], &trusted, None),
        (
            &near,
            &[],
            &unknown,
            Some("is not trusted: invalid peer certificate"),
        ),
        (&wrong, &[], &trusted, Some("not valid for")),
        (
            &near,
            &[("HTTPS_PROXY", "http://127.0.0.1:1")],
            &trusted,
            None,
        ),
        (far, &[("HTTPS_PROXY", &through)], &trusted, None),
        (far, &[("https_proxy", &through)], &trusted, None),
        (far, &[("ALL_PROXY", &through)], &trusted, None),
        (
            far,
            &[("all_proxy", &through)],
            &unknown,
            Some("invalid peer certificate"),
        ),
        (
            far,
            &[("HTTP_PROXY", &through)],
            &trusted,
            Some("no connection to the server"),
        ),
        (
            far,
            &[("ALL_PROXY", &through), ("no_proxy", "server.test")],
            &trusted,
            Some("no connection to the server"),
        ),
    ] {
        asked.lock().clear();
        let (listed, said) = tools(url, variables, roots).await;
        match error {
            None => assert!(
                listed.contains("far__orders__get_order"),
                "{url} {variables:?}: {said}"
            ),
            Some(error) => assert!(said.contains(error), "{url} {variables:?}: {said}"),
        }
        assert!(!said.contains("secret"), "{said}");
        let is_proxied =
            url == far && error.is_none_or(|error| !error.starts_with("no connection"));
        let asked = asked.lock();
        assert_eq!(!asked.is_empty(), is_proxied, "{url} {variables:?}");
        assert!(
            asked
                .iter()
                .all(|line| line == "CONNECT server.test:443 HTTP/1.1"),
            "{asked:?}"
        );
    }
    gateway.stopped().await;
}
