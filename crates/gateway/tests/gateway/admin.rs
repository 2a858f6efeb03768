//! The admin listener: what is on it and not on the public one, who may ask, and where it is.

use serde_json::{Value, json};

use crate::support::{CALLWARD, Gateway, Pipe, SERVE, callward, ends, file, http, text, within};

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
async fn a_taken_default_port_is_replaced() {
    // of two, one at most has the default port, even if another process takes and leaves it
    // meanwhile
    let other = Gateway::sample().await;
    let gateway = Gateway::sample().await;
    assert_ne!(gateway.admin, other.admin);
    for gateway in [&gateway, &other] {
        assert_eq!(gateway.get("/api/tools").await.0, 200);
    }
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
    // the public address serves clients, and says so to operators
    let done = asked(&["cache", "--url", &first.url]).await;
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("public address"), "{done:?}");
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
    let command = callward(&[&SERVE[..], &["--state-dir", path]].concat());
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
