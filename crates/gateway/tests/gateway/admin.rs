//! The admin listener: what is on it and not on the public one, who may ask, and where it is.

use serde_json::{Value, json};

use crate::support::{CALLWARD, Gateway, Pipe, callward, ends, file, http, text, within};

const SHOP: &str = "[servers.shop]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n";

#[tokio::test]
async fn nothing_of_the_operator_is_on_the_public_listener() {
    let gateway = Gateway::sample().await;
    let client = http();
    for host in ["localhost", "127.0.0.1:7421", "evil.example"] {
        for path in ["/metrics", "/api/tools", "/api/servers", "/api/cache"] {
            let asked = client.get(gateway.public(path)).header("host", host).send();
            assert_eq!(within(path, asked).await.unwrap().status(), 404, "{path}");
        }
        for (path, body) in [
            ("/api/tools/orders__get_order/call", json!({"order_id": 1})),
            ("/api/cache/purge", json!({"all": true})),
            ("/api/servers/orders-primary/drain", json!({})),
        ] {
            let post = client.post(gateway.public(path)).header("host", host);
            let answer = within(path, post.json(&body).send()).await.unwrap();
            assert_eq!(answer.status(), 404, "{path}");
        }
    }
    // the same paths, where they are
    assert_eq!(gateway.get("/metrics").await.0, 200);
    assert_eq!(gateway.get("/api/tools").await.0, 200);
    assert_eq!(gateway.get("/mcp").await.0, 404);
}

#[tokio::test]
async fn the_admin_listener_refuses_pages_and_other_names() {
    let gateway = Gateway::sample().await;
    let client = http();
    for (name, value, status) in [
        ("origin", "http://localhost:3000", 403),
        ("origin", "null", 403),
        ("sec-fetch-site", "cross-site", 403),
        ("host", "evil.example", 403),
        ("host", "0.0.0.0:7421", 403),
        ("host", "localhost:1", 200),
        ("host", "[::1]", 200),
    ] {
        for path in ["/api/tools", "/metrics", "/readyz"] {
            let asked = client.get(gateway.at(path)).header(name, value).send();
            let answer = within(path, asked).await.unwrap();
            assert_eq!(answer.status(), status, "{path}, {name}: {value}");
        }
        let post = client.post(gateway.at("/api/cache/purge"));
        let post = post.header(name, value).json(&json!({"all": true})).send();
        let answer = within("the purge", post).await.unwrap();
        assert_eq!(answer.status(), status, "{name}: {value}");
    }
}

#[tokio::test]
async fn metrics_are_public_only_by_choice_and_for_known_hosts() {
    let gateway = Gateway::configured(&format!("[http]\nmetrics = true\n{SHOP}")).await;
    let (status, metrics) = gateway.get_url(&gateway.public("/metrics")).await;
    assert_eq!(status, 200);
    assert!(metrics.contains("callward_server_up"), "{metrics}");
    for (name, value) in [("host", "evil.example"), ("origin", "http://localhost")] {
        let asked = http().get(gateway.public("/metrics")).header(name, value);
        let answer = within(value, asked.send()).await.unwrap();
        assert_eq!(answer.status(), 403, "{name}: {value}");
    }
    assert_eq!(gateway.get("/metrics").await.0, 200);
}

#[tokio::test]
async fn a_taken_default_port_is_replaced_and_a_configured_one_is_an_error() {
    // of two, one at most has the default port, even if another process takes and leaves it
    // meanwhile
    let other = Gateway::sample().await;
    let gateway = Gateway::sample().await;
    assert_ne!(gateway.admin, other.admin);
    for gateway in [&gateway, &other] {
        assert_eq!(gateway.get("/api/tools").await.0, 200);
    }

    let port = gateway.admin.rsplit(':').next().unwrap();
    let config = file(format!(
        "[http]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = {port:?}\n[servers.a]\ncommand = \"x\"\n"
    ));
    let done = ends(&["serve", "--config", config.path().to_str().unwrap()]).await;
    assert_eq!(done.status.code(), Some(1));
    let said = text(&done.stderr);
    let expected = format!("127.0.0.1:{port} is taken by another process");
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains("admin.listen"), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_is_its_owner_s_alone_and_ends_with_the_gateway() {
    use std::os::unix::fs::PermissionsExt;

    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("admin.sock");
    let admin = format!("unix:{}", socket.display());
    let gateway = Gateway::configured(&format!("[admin]\nlisten = {admin:?}\n{SHOP}")).await;
    assert_eq!(gateway.admin, admin);
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let state = gateway.state.path().to_str().unwrap().to_owned();
    for place in [["--url", &admin], ["--state-dir", &state]] {
        let done = ends(&[&["tools", "--json"], &place[..]].concat()).await;
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert_eq!(text(&done.stdout).lines().count(), 9);
    }
    gateway.stopped().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn commands_find_the_gateway_that_runs() {
    let gateway = Gateway::configured(SHOP).await;
    let state = gateway.state.path().to_str().unwrap().to_owned();
    let asked = async |args: &[&str]| ends(&[args, &["--state-dir", &state]].concat()).await;
    for command in ["tools", "cache", "breakers", "limits", "servers"] {
        let done = asked(&[command, "--json"]).await;
        assert!(done.status.success(), "{command}: {}", text(&done.stderr));
    }
    let done = asked(&["servers", "--json"]).await;
    let servers: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(servers[0]["id"], "shop", "{servers}");
    let done = asked(&["call", "shop__get_order", r#"{"order_id": 1}"#]).await;
    assert!(text(&done.stdout).contains("lamp"), "{done:?}");
    let done = asked(&["explain", "shop__get_order"]).await;
    assert!(done.status.success(), "{}", text(&done.stderr));

    // the public address serves clients, and says so to operators
    let done = asked(&["cache", "--url", &gateway.url]).await;
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(said.contains("public address"), "{said}");
}

#[tokio::test]
async fn one_of_several_gateways_is_named_by_its_config_or_address() {
    let first = Gateway::configured(SHOP).await;
    let mut second = Gateway::beside(&first, &SHOP.replace("shop", "store")).await;
    let state = first.state.path().to_str().unwrap().to_owned();
    let asked = async |args: &[&str]| ends(&[args, &["--state-dir", &state]].concat()).await;

    for command in ["tools", "servers"] {
        let done = asked(&[command]).await;
        assert_eq!(done.status.code(), Some(2));
        let said = text(&done.stderr);
        for part in [
            &first.admin,
            &second.admin,
            first.config(),
            second.config(),
            "--url",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
    for (gateway, server) in [(&first, "shop"), (&second, "store")] {
        for place in [["--config", gateway.config()], ["--url", &gateway.admin]] {
            let done = asked(&[&["servers", "--json"], &place[..]].concat()).await;
            let servers: Value = serde_json::from_slice(&done.stdout).unwrap();
            assert_eq!(servers[0]["id"], server, "{place:?}");
        }
    }

    // one ends in good order, the other does not: neither is found any more
    first.stopped().await;
    let done = asked(&["servers", "--json"]).await;
    assert!(text(&done.stdout).contains("store"), "{done:?}");
    second.killed().await;
    let done = asked(&["servers", "--config", second.config()]).await;
    assert_eq!(done.status.code(), Some(1));
    let said = text(&done.stderr);
    assert!(said.contains("no gateway is running"), "{said}");
}

#[tokio::test]
async fn a_state_directory_that_cannot_be_written_stops_nothing() {
    let in_the_way = file("");
    let path = in_the_way.path().to_str().unwrap();
    let command = callward(&[
        "serve",
        "--json",
        "--http",
        "127.0.0.1:0",
        "--state-dir",
        path,
    ]);
    let gateway = Gateway::starting(command, None, None).await;
    assert_eq!(gateway.get("/api/tools").await.0, 200);
    let said = gateway.stopped().await;
    assert!(
        said.contains("the state directory cannot be written"),
        "{said}"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_gateway_over_stdio_listens_nowhere() {
    let pipe = Pipe::open(&["run", "--", CALLWARD, "sample"]).await;
    let process = format!("/proc/{}", pipe.child.id().unwrap());
    let open: Vec<_> = std::fs::read_dir(format!("{process}/fd"))
        .unwrap()
        .filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .collect();
    let sockets = std::fs::read_to_string(format!("{process}/net/tcp")).unwrap();
    let listening = sockets.lines().skip(1).filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        (fields[3] == "0A").then(|| format!("socket:[{}]", fields[9]))
    });
    for socket in listening {
        assert!(!open.contains(&socket), "{socket} in {open:?}");
    }
    assert!(pipe.close().await);
}

#[tokio::test]
async fn a_post_that_needs_no_preflight_does_nothing() {
    let gateway = Gateway::sample().await;
    for path in [
        "/api/tools/orders__get_order/call",
        "/api/tools/orders__get_order/explain",
        "/api/breakers",
        "/api/cache/purge",
        "/api/servers/orders-primary/drain",
        "/api/servers/orders-primary/undrain",
        "/api/servers/orders-primary/weight",
    ] {
        for kind in [
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("multipart/form-data"),
            Some("application/json-evil"),
            Some("text/plain; application/json"),
            None,
        ] {
            let mut request = http().post(gateway.at(path)).body(r#"{"order_id": 1}"#);
            if let Some(kind) = kind {
                request = request.header("content-type", kind);
            }
            let answer = within(path, request.send()).await.unwrap();
            assert_eq!(answer.status(), 415, "{kind:?} {path}");
        }
    }
}
