//! The stream of what the router does: each choice, each change of health, and its end.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout};

use crate::scripted::{Script, tool};
use crate::support::{Gateway, callward, http, result, sample, signal, within};

/// Two servers of one set, with more lines before them and in the section of each.
fn two(all: &str, each: &str) -> String {
    let each = ["a", "b"].map(|id| format!("{}set = \"shop\"\n{each}\n", sample(id)));
    format!("{all}\n{}", each.concat())
}

/// Adds a note, which no cache answers; returns which server did.
async fn note(gateway: &Gateway, tool: &str) -> String {
    let note = json!({"order_id": 1, "text": "x"});
    let answer = gateway.call(tool, note).await;
    answer["server"].as_str().unwrap().to_owned()
}

/// Sends a signal to the process of server `a`.
async fn signal_to_a(gateway: &Gateway, name: &str) -> u32 {
    let url = gateway.at("/api/tools/shop__orders_stats/call?server=a");
    let ask = json!({"ask": "pid"});
    let answer = within(
        "the pid",
        http()
            .post(url)
            .bearer_auth(&gateway.token)
            .json(&ask)
            .send(),
    )
    .await;
    let stats: Value = serde_json::from_str(&answer.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(stats["server"], "a", "{stats}");
    let pid = &stats["result"]["structuredContent"]["pid"];
    let pid = u32::try_from(pid.as_u64().unwrap()).unwrap();
    signal(name, pid).await;
    pid
}

/// `callward events`, or a command like it, running.
pub(crate) struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    notes: Lines<BufReader<ChildStderr>>,
}

impl Follower {
    /// Starts it, and waits until it hears.
    async fn of(gateway: &Gateway, args: &[&str]) -> Self {
        Self::running(gateway, &["events"], args).await
    }

    /// The same, of this command.
    pub(crate) async fn running(gateway: &Gateway, command: &[&str], args: &[&str]) -> Self {
        let all = [command, &gateway.here()[..], args].concat();
        let mut child = callward(&all).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let notes = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut follower = Self {
            child,
            lines,
            notes,
        };
        follower.notes("following").await;
        follower
    }

    /// Reads on until a note says this.
    pub(crate) async fn notes(&mut self, what: &str) {
        let note = within(what, self.notes.next_line()).await.unwrap();
        let note = note.unwrap_or_default();
        assert!(note.contains(what), "{note}");
    }

    /// Reads on until a line is one that is looked for.
    pub(crate) async fn line(&mut self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        within(what, async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if is_it(&line) {
                    return line;
                }
            }
            panic!("{what}: never reported");
        })
        .await
    }

    /// Reads on until an event of this type of this server, or for this one.
    async fn event(&mut self, kind: &str, key: &str, server: &str) -> Value {
        let is_it = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            event["type"] == kind && event[key] == server
        };
        let line = self.line(kind, is_it).await;
        serde_json::from_str(&line).unwrap()
    }

    /// Waits for the end, and returns whether it was a good one.
    pub(crate) async fn ends(mut self) -> bool {
        let ended = within("the end", self.child.wait()).await;
        ended.unwrap().success()
    }
}

#[tokio::test]
async fn choices_and_changes_of_health_are_told_until_the_gateway_stops() {
    let gateway = Gateway::configured(&two("[router]\nstrategy = \"round_robin\"", "")).await;
    let mut raw = Follower::of(&gateway, &["--json"]).await;
    let mut plain = Follower::of(&gateway, &[]).await;
    let server = note(&gateway, "shop__add_note").await;
    let chosen = raw.event("routeDecision", "chosen", &server).await;
    assert_eq!(chosen["tool"], "add_note", "{chosen}");
    assert_eq!(chosen["strategy"], "round_robin", "{chosen}");
    assert_eq!(chosen["servers"], 2, "{chosen}");
    assert_eq!(chosen["candidates"].as_array().unwrap().len(), 2);
    let reported = format!("decision  shop.add_note, attempt 1 -> {server}, ");
    plain
        .line(&reported, |line| line.starts_with(&reported))
        .await;

    signal_to_a(&gateway, "-KILL").await;
    let gone = raw.event("healthUpdate", "server", "a").await;
    let shown = (&gone["to"], &gone["set"]);
    assert_eq!(shown, (&json!("unreachable"), &json!("shop")), "{gone}");

    // one whose output is read no more ends well at the next event
    let Follower {
        mut child, lines, ..
    } = Follower::of(&gateway, &[]).await;
    drop(lines);
    note(&gateway, "shop__add_note").await;
    let status = within("the end", child.wait()).await.unwrap();
    assert!(status.success(), "{status}");

    gateway.stopped().await;
    for mut follower in [raw, plain] {
        follower.notes("the gateway stopped").await;
        assert!(follower.ends().await);
    }
}

#[tokio::test]
async fn events_name_calls_without_a_server_and_ctrl_c_ends_the_command() {
    let gateway = Gateway::configured(&two("", "weight = 20")).await;
    let mut raw = Follower::of(&gateway, &["--json"]).await;
    let order = json!({"order_id": 1});
    let refused = gateway.call("shop__delete_order", order).await;
    assert_eq!(refused["error"]["kind"], "no_eligible_server", "{refused}");
    let failed = raw.event("routeFailed", "tool", "delete_order").await;
    assert_eq!(failed["error"], "no_eligible_server", "{failed}");
    assert_eq!(failed["rule"]["min_weight"], 50, "{failed}");
    for candidate in failed["candidates"].as_array().unwrap() {
        assert_eq!(candidate["unfit"], "too_light", "{failed}");
    }
    signal("-INT", raw.child.id().unwrap()).await;
    assert!(raw.ends().await);

    // what it followed is plain server-sent events
    let url = gateway.at("/api/routes/events");
    let stream = http().get(&url).bearer_auth(&gateway.token).send();
    let mut stream = within("the stream", stream).await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    note(&gateway, "shop__add_note").await;
    let mut all = String::new();
    while !all.contains("routeDecision") {
        let part = within("an event", stream.chunk()).await.unwrap().unwrap();
        all.push_str(std::str::from_utf8(&part).unwrap());
    }
    let mut events = all.split("\n\n");
    let event = events.find_map(|event| event.strip_prefix("data: "));
    let event: Value = serde_json::from_str(event.unwrap()).unwrap();
    assert_eq!(event["type"], "routeDecision", "{all}");
}

#[tokio::test]
async fn a_definition_that_is_left_out_is_told_and_hides_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("tools");
    let ask = tool("ask", false).to_string();
    std::fs::write(&list, format!("[{ask}]")).unwrap();
    let server = Script {
        each: r#"tools=$(cat "$argument")"#,
        call: r#"echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; says x"#,
        argument: list.to_str().unwrap(),
        ..Script::counting(&json!([]))
    };
    let config = format!("{}instances = \"shared\"\n", server.server("shop"));
    let gateway = Gateway::configured(&config).await;

    let large = r#"{"name":"large","inputSchema":{"type":"object","x":1e400}}"#;
    let refused = [
        ("large", large, "1.8e308"),
        ("bare", r#"{"name":"bare"}"#, "inputSchema"),
        ("#3", "[]", "not an object"),
    ];
    let mut expected = Vec::new();
    let all = refused.map(|(_, definition, _)| definition).join(",");
    let mut events = Follower::of(&gateway, &["--json"]).await;
    std::fs::write(&list, format!("[{all},{ask}]")).unwrap();
    gateway.call("shop__ask", json!({})).await;
    for (tool, _, why) in refused {
        let event = events.event("toolRefused", "tool", tool).await;
        assert_eq!([&event["set"], &event["server"]], ["shop", "shop"]);
        let reason = event["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{reason}");
        expected.push(json!({"server": "shop", "tool": tool, "reason": reason}));
    }
    let missing: Value = gateway.json("/api/missing").await;
    assert_eq!(missing, Value::from(expected));
    result(&gateway.mcp("shop__ask", json!({})).await);
}

#[tokio::test]
async fn calls_about_one_thing_stay_together() {
    let all =
        "[router]\nstrategy = \"affinity\"\n[router.affinity]\nby = \"/order_id\"\nttl = \"1h\"";
    let gateway = Gateway::configured(&two(all, "")).await;
    let mut raw = Follower::of(&gateway, &["--json"]).await;
    let server = note(&gateway, "shop__add_note").await;
    for _ in 0..6 {
        assert_eq!(note(&gateway, "shop__add_note").await, server);
    }
    let set = raw.event("affinitySet", "server", &server).await;
    let found = (&set["by"], &set["ttl_ms"], &set["set"]);
    let expected = (&json!("argument"), &json!(3_600_000), &json!("shop"));
    assert_eq!(found, expected, "{set}");
}

#[tokio::test]
async fn an_unanswered_ping_opens_the_breaker_until_one_is_answered() {
    let all =
        "[breaker.server]\nfailures = 1\nopen_for = \"100ms\"\n[router.ping]\ninterval = \"100ms\"";
    let gateway = Gateway::configured(&two(all, "")).await;
    let mut raw = Follower::of(&gateway, &["--json"]).await;
    let pid = signal_to_a(&gateway, "-STOP").await;
    let gone = raw.event("healthUpdate", "server", "a").await;
    assert_eq!(gone["to"], "open", "{gone}");
    assert_eq!(gone["reason"], "a failure: it answers no pings", "{gone}");
    signal("-CONT", pid).await;
    let back = raw.event("healthUpdate", "to", "healthy").await;
    assert_eq!(back["server"], "a", "{back}");
    assert_eq!(back["reason"], "a probe succeeded", "{back}");
}
