//! The stream of what the router does: each choice, each change of health, and its end.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout};

use crate::scripted::Script;
use crate::support::{Gateway, callward, http, signal, within};

/// Two servers of one set, with more lines before them and in the section of each.
fn two(all: &str, each: &str) -> String {
    let server = |id: &str| {
        format!(
            "[servers.{id}]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\nset = \"shop\"\n{each}\n"
        )
    };
    format!("{all}\n{}{}", server("a"), server("b"))
}

/// Adds a note, which no cache answers.
async fn note(gateway: &Gateway, tool: &str) -> Value {
    let note = json!({"order_id": 1, "text": "x"});
    gateway.call(tool, note).await
}

/// Sends a signal to the process of server `a`.
async fn signal_to_a(gateway: &Gateway, name: &str) -> u32 {
    let url = gateway.at("/api/tools/shop__orders_stats/call?server=a");
    let ask = json!({"ask": "pid"});
    let answer = within("the pid", http().post(url).json(&ask).send()).await;
    let stats: Value = serde_json::from_str(&answer.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(stats["server"], "a", "{stats}");
    let pid = &stats["result"]["structuredContent"]["pid"];
    let pid = u32::try_from(pid.as_u64().unwrap()).unwrap();
    signal(name, pid).await;
    pid
}

/// `callward events`, running.
struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    notes: Lines<BufReader<ChildStderr>>,
}

impl Follower {
    /// Starts it, and waits until it hears.
    async fn of(gateway: &Gateway, args: &[&str]) -> Self {
        let all = [&["events", "--url", &gateway.admin], args].concat();
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
    async fn notes(&mut self, what: &str) {
        let note = within(what, self.notes.next_line()).await.unwrap();
        let note = note.unwrap_or_default();
        assert!(note.contains(what), "{note}");
    }

    /// Reads on until a line is one that is looked for.
    async fn finds(&mut self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
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
        let line = self.finds(kind, is_it).await;
        serde_json::from_str(&line).unwrap()
    }

    /// Waits for the end, and returns whether it was a good one.
    async fn ends(mut self) -> bool {
        within("the end", self.child.wait())
            .await
            .unwrap()
            .success()
    }
}

#[tokio::test]
async fn choices_and_changes_of_health_are_told_until_the_gateway_stops() {
    let gateway = Gateway::configured(&two("[router]\nstrategy = \"round_robin\"", "")).await;
    let mut raw = Follower::of(&gateway, &["--json"]).await;
    let mut plain = Follower::of(&gateway, &[]).await;
    let done = note(&gateway, "shop__add_note").await;
    let server = done["server"].as_str().unwrap();

    let chosen = raw.event("routeDecision", "chosen", server).await;
    assert_eq!(chosen["tool"], "add_note", "{chosen}");
    assert_eq!(chosen["strategy"], "round_robin", "{chosen}");
    assert_eq!(chosen["servers"], 2, "{chosen}");
    assert_eq!(chosen["candidates"].as_array().unwrap().len(), 2);
    let reported = format!("decision  shop.add_note, attempt 1 -> {server}, ");
    plain
        .finds(&reported, |line| line.starts_with(&reported))
        .await;

    signal_to_a(&gateway, "-KILL").await;
    let gone = raw.event("healthUpdate", "server", "a").await;
    assert_eq!(gone["to"], "unreachable", "{gone}");
    assert_eq!(gone["set"], "shop", "{gone}");
    let is_gone = |line: &str| line.starts_with("health    a of shop: ");
    let line = plain.finds("the health of a", is_gone).await;
    assert!(
        line.contains("-> unreachable, for its connection"),
        "{line}"
    );

    signal("-TERM", gateway.child.id().unwrap()).await;
    let (well, said) = gateway.ended().await;
    assert!(well, "{said}");
    for mut follower in [raw, plain] {
        follower.notes("the gateway stopped").await;
        assert!(follower.ends().await);
    }
}

#[tokio::test]
async fn what_nobody_may_take_is_told_and_ctrl_c_ends_the_listening_alone() {
    let gateway = Gateway::configured(&two("", "weight = 20")).await;
    let mut raw = Follower::of(&gateway, &["--json"]).await;
    let refused = gateway
        .call("shop__delete_order", json!({"order_id": 1}))
        .await;
    assert_eq!(refused["error"]["kind"], "no_eligible_server", "{refused}");
    let failed = raw.event("routeFailed", "tool", "delete_order").await;
    assert_eq!(failed["error"], "no_eligible_server", "{failed}");
    assert_eq!(failed["rule"]["min_weight"], 50, "{failed}");
    for candidate in failed["candidates"].as_array().unwrap() {
        assert_eq!(candidate["unfit"], "too_light", "{failed}");
    }

    signal("-INT", raw.child.id().unwrap()).await;
    assert!(raw.ends().await);
    let done = note(&gateway, "shop__add_note").await;
    assert!(done["result"].is_object(), "{done}");
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_listening_well() {
    let gateway = Gateway::sample().await;
    let Follower {
        mut child, lines, ..
    } = Follower::of(&gateway, &[]).await;
    drop(lines);
    // what is reported of this cannot be written
    note(&gateway, "orders__add_note").await;
    let status = within("the end", child.wait()).await.unwrap();
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn the_stream_is_plain_server_sent_events() {
    let gateway = Gateway::sample().await;
    let client = http();
    let url = gateway.at("/api/routes/events");
    let mut answer = within("the stream", client.get(&url).send()).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    note(&gateway, "orders__add_note").await;
    let mut all = String::new();
    while !all.contains("routeDecision") {
        let part = within("an event", answer.chunk()).await.unwrap().unwrap();
        all.push_str(std::str::from_utf8(&part).unwrap());
    }
    let event = all
        .split("\n\n")
        .find_map(|event| event.strip_prefix("data: "));
    let event: Value = serde_json::from_str(event.unwrap()).unwrap();
    assert_eq!(event["type"], "routeDecision", "{all}");
}

#[tokio::test]
async fn a_definition_that_is_left_out_is_told_and_hides_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("tools");
    let ask = json!({"name": "ask", "inputSchema": {"type": "object"}}).to_string();
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
        assert_eq!(
            (&event["set"], &event["server"]),
            (&json!("shop"), &json!("shop"))
        );
        let reason = event["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{reason}");
        expected.push(json!({"server": "shop", "tool": tool, "reason": reason}));
    }

    let missing: Value = gateway.json("/api/missing").await;
    assert_eq!(missing, Value::from(expected));
    let answer = gateway.mcp("shop__ask", json!({})).await;
    assert!(answer["result"].is_object(), "{answer}");
}

#[tokio::test]
async fn calls_about_one_thing_stay_together() {
    let all =
        "[router]\nstrategy = \"affinity\"\n[router.affinity]\nby = \"/order_id\"\nttl = \"1h\"";
    let gateway = Gateway::configured(&two(all, "")).await;
    let mut raw = Follower::of(&gateway, &["--json"]).await;
    let mut plain = Follower::of(&gateway, &[]).await;
    let first = note(&gateway, "shop__add_note").await["server"].clone();
    for _ in 0..6 {
        assert_eq!(note(&gateway, "shop__add_note").await["server"], first);
    }
    let server = first.as_str().unwrap();
    let set = raw.event("affinitySet", "server", server).await;
    let expected = (&json!("argument"), &json!(3_600_000), &json!("shop"));
    assert_eq!((&set["by"], &set["ttl_ms"], &set["set"]), expected, "{set}");
    let goes = format!("in shop goes to {server} for 1h");
    let is_it = |line: &str| line.starts_with("affinity  argument ") && line.ends_with(&goes);
    plain.finds(&goes, is_it).await;
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
