//! While servers start: who is answered, and with what.

use rmcp::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::scripted::Script;
use crate::support::{
    Gateway, Pipe, SERVE, answer_of, callward, ends, file, result, said, sample, serve, signal,
    text, until, within,
};

/// A path where there is no file yet.
struct Sign(tempfile::TempDir);

impl Sign {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> String {
        self.0.path().join("go").to_str().unwrap().to_owned()
    }

    fn give(&self) {
        std::fs::write(self.path(), "").unwrap();
    }
}

/// A server that does not start before there is a file at its argument.
fn waits_for(path: &str) -> Script<'_> {
    Script {
        each: "while [ ! -e \"$argument\" ]; do sleep 0.02; done",
        argument: path,
        ..Script::of_one("late_read")
    }
}

/// Serves a config, and waits for the address only.
async fn starting(config: &str) -> Gateway {
    let (command, file) = serve(config);
    Gateway::starting(command, Some(file), None).await
}

async fn readiness(gateway: &Gateway) -> (u16, Value) {
    let (status, body) = gateway.get_url(&gateway.public("/readyz")).await;
    (status, serde_json::from_str(&body).unwrap())
}

#[tokio::test]
async fn clients_are_greeted_at_once_and_their_lists_wait_for_slow_servers() {
    let sign = Sign::new();
    let slow = waits_for(&sign.path()).server("slow");
    let gateway = starting(&(slow + &sample("fast"))).await;
    let healthz = gateway.get_url(&gateway.public("/healthz")).await;
    assert_eq!(healthz.0, 200);
    until("the fast server", || async {
        let (status, body) = readiness(&gateway).await;
        assert_eq!((status, &body["ready"]), (503, &json!(false)), "{body}");
        assert_eq!(body["reason"], "servers are starting", "{body}");
        (body["missing"] == json!(["slow"])).then_some(())
    })
    .await;

    let client = gateway.connect(ClientLifecycleMode::Initialize).await;
    // a tool that is there can be called, and one that is not waits as the list does
    result(&gateway.mcp("fast__get_order", json!({"order_id": 1})).await);
    let late = gateway.begin("slow__late_read", &json!({}));
    let go = async {
        assert_eq!(readiness(&gateway).await.0, 503);
        sign.give();
    };
    let all = async { tokio::join!(client.list_all_tools(), go) };
    let (tools, ()) = within("the lists", all).await;
    assert_eq!(tools.unwrap().len(), 10);
    let (_, late) = within("the call", late).await.unwrap();
    assert_eq!(said(&answer_of(&late)), "run 1");
    let (status, body) = readiness(&gateway).await;
    assert_eq!((status, &body["ready"]), (200, &json!(true)), "{body}");
    assert!(body.get("missing").is_none(), "{body}");
}

#[tokio::test]
async fn a_call_waits_for_the_server_of_its_tool_only() {
    let (silent, slow) = (Sign::new(), Sign::new());
    let servers = [(&silent, "silent"), (&slow, "slow")];
    let config = servers.map(|(sign, name)| waits_for(&sign.path()).server(name));
    let config = format!("startup_timeout = \"10m\"\n{}", config.concat());
    let gateway = starting(&config).await;
    let call = gateway.mcp("slow__late_read", json!({}));
    let go = async {
        assert_eq!(readiness(&gateway).await.0, 503);
        slow.give();
    };
    let (late, ()) = within("the call", async { tokio::join!(call, go) }).await;
    assert_eq!(said(&late), "run 1");
    let (_, body) = readiness(&gateway).await;
    assert_eq!(body["missing"], json!(["silent"]), "{body}");
}

#[tokio::test]
async fn over_pipes_others_are_answered_while_the_list_waits() {
    let sign = Sign::new();
    let path = sign.path();
    // this waits for the answer to `initialize`
    let mut pipe = Pipe::around(&waits_for(&path)).await;
    assert_eq!(pipe.hello["result"]["protocolVersion"], "2025-11-25");
    let list = pipe.send("tools/list", json!({})).await;
    let params = json!({"name": "late_read", "arguments": {}});
    let call = pipe.send("tools/call", params).await;
    let pong = pipe.request("ping", json!({})).await;
    assert_eq!(pong["result"], json!({}));
    sign.give();
    let listed: Value = serde_json::from_str(&pipe.answer(list).await).unwrap();
    assert_eq!(listed["result"]["tools"][0]["name"], "late_read");
    let called: Value = serde_json::from_str(&pipe.answer(call).await).unwrap();
    assert_eq!(said(&called), "run 1");
    assert!(pipe.close().await);
}

#[tokio::test]
async fn tools_that_come_after_the_startup_timeout_are_announced() {
    let sign = Sign::new();
    let slow = waits_for(&sign.path()).server("slow");
    let gateway = Gateway::configured(&format!("startup_timeout = \"100ms\"\n{slow}")).await;
    let client = gateway.connect(ClientLifecycleMode::Initialize).await;
    let declared = client.peer_info().unwrap().capabilities.clone();
    assert!(declared.prompts.is_some() && declared.resources.is_some());
    let tools = within("the list", client.list_all_tools()).await.unwrap();
    assert_eq!(tools.len(), 0);
    let (status, body) = readiness(&gateway).await;
    let found = (status, &body["reason"], &body["missing"]);
    let expected = (503, &json!("no server is up"), &json!(["slow"]));
    assert_eq!(found, expected);

    let asked = json!({ "notifications": { "toolsListChanged": true } });
    let listen = gateway.modern("subscriptions/listen", asked).send();
    let mut events = within("listening", listen).await.unwrap();
    let mut heard = String::new();
    within("the announcement", async {
        while !heard.contains("list_changed") {
            let part = events.chunk().await.unwrap().unwrap();
            heard.push_str(text(&part));
            if heard.contains("acknowledged") {
                sign.give();
            }
        }
    })
    .await;
    let tools = within("the list", client.list_all_tools()).await.unwrap();
    assert_eq!(tools.len(), 1);
}

#[tokio::test]
async fn sigterm_ends_the_process_while_servers_start() {
    let sign = Sign::new();
    let path = sign.path();
    let slow = waits_for(&path);
    let gateway = starting(&slow.server("slow")).await;
    let (_, body) = readiness(&gateway).await;
    assert_eq!(body["reason"], "servers are starting");
    gateway.stopped().await;

    let mut pipe = Pipe::around(&slow).await;
    pipe.send("tools/list", json!({})).await;
    signal("-TERM", pipe.child.id().unwrap()).await;
    let status = within("the end", pipe.child.wait()).await.unwrap();
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_taken_port_is_said_before_any_server_starts() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let place = tempfile::tempdir().unwrap();
    let mark = place.path().join("started");
    let server = format!("[servers.a]\ncommand = \"touch\"\nargs = [{mark:?}]\n");
    let http = file(format!("[http]\nlisten = {address:?}\n{server}"));
    let free = "[http]\nlisten = \"127.0.0.1:0\"\n";
    let admin = file(format!("{free}[admin]\nlisten = {address:?}\n{server}"));
    let [http, admin] = [&http, &admin].map(|file| file.path().to_str().unwrap());
    let mark = mark.to_str().unwrap();
    for (args, key) in [
        (&["serve", "--config", http][..], "http.listen"),
        (&["serve", "--config", admin], "admin.listen"),
        (&["run", "--http", &address, "--", "touch", mark], "--http"),
    ] {
        let done = ends(args).await;
        assert_eq!(done.status.code(), Some(1), "{args:?}");
        let said = text(&done.stderr);
        let expected = format!("{address} is taken by another process");
        assert!(said.contains(&expected) && said.contains(key), "{said}");
    }
    assert!(!std::path::Path::new(mark).exists());
}

#[tokio::test]
async fn without_a_config_the_sample_is_said_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = callward(&SERVE);
    command.current_dir(folder.path());
    let said = Gateway::started(command, None, None).await.stopped().await;
    let first = said.lines().next().unwrap();
    assert!(first.contains("serving the embedded sample"), "{said}");
    assert!(
        said.contains("try:  callward call orders__get_order"),
        "{said}"
    );
}
