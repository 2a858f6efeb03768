//! The admin listener: what is on it and not on the public one, what it refuses, and where it is.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::{
    CALLWARD, Gateway, Pipe, SERVE, callward, ends, file, http, sample, serve, text, within,
};

const JSON: &str = "application/json";

#[tokio::test]
async fn nothing_of_the_operator_is_on_the_public_listener() {
    let gateway = Gateway::sample().await;
    for host in ["localhost", "127.0.0.1:7421", "evil.example"] {
        for path in [
            "/metrics",
            "/api/tools",
            "/api/cache",
            "/api/tools/orders__get_order/call",
            "/api/cache/purge",
            "/api/servers/orders-primary/drain",
        ] {
            let url = gateway.public(path);
            let body = json!({"all": true, "order_id": 1});
            for request in [http().get(&url), http().post(&url).json(&body)] {
                let answer = within(path, request.header("host", host).send()).await;
                assert_eq!(answer.unwrap().status(), 404, "{path}");
            }
        }
    }
    // the same paths, where they are
    assert_eq!(gateway.get("/metrics").await.0, 200);
    assert_eq!(gateway.get("/api/tools").await.0, 200);
    assert_eq!(gateway.get("/mcp").await.0, 404);
    // a port that is taken is replaced: of two, one at most has the default one
    let other = Gateway::sample().await;
    assert_ne!(gateway.admin, other.admin);
    assert_eq!(other.get("/api/tools").await.0, 200);
}

/// Each row: a path below `/api`, a body, the status and a part of the answer.
const REFUSED: &str = r#"
servers/ghost/drain |  | 404 | no server \"ghost\"
servers/ghost/undrain | {} | 404 | the servers are
servers/ghost/weight | {"weight": 1} | 404 | no server
servers/orders-primary/weight | {"weight": 101} | 400 | 101 is not a weight
servers/orders-primary/weight | {} | 400 | `weight`
servers/orders-primary/drain | {"now": true} | 400 | no body
cache/purge | {"tool":"orders__get_ordr"} | 404 | did you mean `orders__get_order`
cache/purge | {"tool":"x"} | 404 | no tool
cache/purge | {"server":"orders-primry"} | 404 | did you mean `orders-primary`
cache/purge | {"all":false} | 404 | only if it is `true`
cache/purge | {"all":true,"server":"orders-primary"} | 400 | exactly one of
cache/purge | {} | 400 | exactly one of
cache/purge | {"sever":"orders-primary"} | 400 | exactly one of
breakers | {"action":"open","server":"x"} | 404 | no server
breakers | {"action":"open","server":"orders-primary","tool":"add_not"} | 404 | you mean `add_note`
breakers | {"action":"open","server":"orders-replica","tool":"t","discovery":true} | 404 | both
breakers | {"action":"shut","server":"orders-primary"} | 400 | open, close or release
tools/orders__get_order/call |  | 400 | not a JSON object
tools/orders__get_order/call | [] | 400 | not a JSON object
tools/orders__get_order/call?server= | {} | 400 | server
tools/orders__get_order/call?server=a&b=c | {} | 400 | server
tools/orders__get_order/call?server=%20 | {} | 400 | server
tools/orders__get_order/call?srever=a | {} | 400 | expected nothing but `server=ID`
tools/orders__get_order/call | {}{"jsonrpc":"2.0"} | 400 | not a JSON object
"#;

#[tokio::test]
async fn a_request_that_is_invalid_or_needs_no_preflight_changes_nothing() {
    let gateway = Gateway::sample().await;
    gateway.call_order(1).await;
    for row in REFUSED.trim().lines() {
        let parts: Vec<_> = row.split(" | ").collect();
        let [path, body, status, said] = parts[..] else {
            panic!("not a row: {row}");
        };
        let (found, text) = gateway.post(&format!("/api/{path}"), JSON, body).await;
        assert_eq!(found.to_string(), status, "{row}: {text}");
        assert!(text.contains(said.trim()), "{row}: {text}");
    }
    for path in [
        "tools/orders__get_order/call",
        "tools/orders__get_order/explain",
        "breakers",
        "cache/purge",
        "servers/orders-primary/drain",
        "servers/orders-primary/undrain",
        "servers/orders-primary/weight",
    ] {
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/json-evil",
            "text/plain; application/json",
            "",
        ] {
            let body = r#"{"all": true, "order_id": 1, "weight": 1}"#;
            let (status, _) = gateway.post(&format!("/api/{path}"), kind, body).await;
            assert_eq!(status, 415, "{kind:?} {path}");
        }
    }
    let servers: Vec<Value> = gateway.json("/api/servers").await;
    let found = (&servers[0]["weight"], &servers[0]["state"]);
    assert_eq!(found, (&json!(80), &json!("healthy")));
    assert_eq!(gateway.call_order(1).await["cache"], "hit");
    // a tool is known to a breaker by either of its names
    for tool in ["add_note", "orders__add_note"] {
        let body = json!({"action": "open", "server": "orders-primary", "tool": tool});
        let (status, said) = gateway.post("/api/breakers", JSON, &body.to_string()).await;
        assert_eq!(status, 200, "{said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        let breaker = (&said["breaker"]["tool"], &said["breaker"]["state"]);
        assert_eq!(breaker, (&json!("add_note"), &json!("forced_open")));
    }
}

#[tokio::test]
async fn a_unix_socket_is_its_owner_s_alone_and_ends_with_the_gateway() {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("admin.sock");
    let admin = format!("unix:{}", socket.display());
    let config = format!("[admin]\nlisten = {admin:?}\n{}", sample("shop"));
    let gateway = Gateway::configured(&config).await;
    assert_eq!(gateway.admin, admin);
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let state = gateway.state.path().to_str().unwrap().to_owned();
    for place in [["--url", &admin], ["--state-dir", &state]] {
        let done = ends(&[&["tools", "--json"], &place[..]].concat()).await;
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert_eq!(text(&done.stdout).lines().count(), 9);
    }
    // another user's commands find it through its config
    let elsewhere = place.path().join("state");
    let config = [
        "--config",
        gateway.config(),
        "--state-dir",
        elsewhere.to_str().unwrap(),
    ];
    let done = ends(&[&["servers"], &config[..]].concat()).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    gateway.stopped().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn one_of_several_gateways_is_named_by_its_config_or_address() {
    let first = Gateway::configured(&sample("shop")).await;
    let (command, file) = serve(&sample("store"));
    let mut second = Gateway::started(command, Some(file), Some(first.state.clone())).await;
    let state = first.state.path().to_str().unwrap().to_owned();
    let asked = async |args: &[&str]| ends(&[args, &["--state-dir", &state]].concat()).await;

    for command in ["tools", "servers"] {
        let done = asked(&[command]).await;
        assert_eq!(done.status.code(), Some(2));
        let said = text(&done.stderr);
        let named = [&first.admin, &second.admin, first.config(), second.config()];
        for part in named.into_iter().chain(["--url"]) {
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
    // without a token that a command could find
    assert_eq!(gateway.get("/api/tools").await.0, 401);
    let said = gateway.stopped().await;
    for expected in [
        "the state directory cannot be written",
        "a key of `[auth]` with a role",
    ] {
        assert!(said.contains(expected), "{said}");
    }
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
    for line in sockets.lines().skip(1) {
        let fields: Vec<_> = line.split_whitespace().collect();
        let socket = format!("socket:[{}]", fields[9]);
        let listens = fields[3] == "0A" && open.contains(&socket);
        assert!(!listens, "{socket} in {open:?}");
    }
    assert!(pipe.close().await);
}
