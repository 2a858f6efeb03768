//! A server on a pipe that writes invalid answers, or none.

use serde_json::Value;

use super::{Scene, tools};
use crate::scripted::Script;
use crate::support::until;

const GOOD: &str = r#"says "did it""#;

/// What the server does on a call, and what both tools get; a server that dies is called once.
const ROWS: &[(&str, &str, &str)] = &[
    ("an invalid line", "echo nonsense; says x", "ok"),
    ("empty lines", r"printf '\n\n\r\n\n'; says x", "ok"),
    ("invalid UTF-8", r"printf '\377\376\300\n'; says x", "ok"),
    (
        "an answer without a request",
        r#"echo '{"jsonrpc":"2.0","id":999999,"result":{}}'; says x"#,
        "ok",
    ),
    (
        "an answer to no id",
        r#"echo '{"jsonrpc":"2.0","id":null,"result":{}}'; says x"#,
        "ok",
    ),
    (
        "answered twice",
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id"; says x"#,
        "ok",
    ),
    (
        "a line of 100 MB",
        "head -c 100000000 /dev/zero | tr '\\0' x; echo; says x",
        "ok",
    ),
    (
        "an answer of 100 MB",
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":"' "$id"
           head -c 100000000 /dev/zero | tr '\0' x; echo '"}}'; continue"#,
        "too_large",
    ),
    (
        "100 MB on standard error",
        "head -c 100000000 /dev/zero | tr '\\0' x >&2; says x",
        "ok",
    ),
    (
        "100,000 notifications",
        r#"yes '{"jsonrpc":"2.0","method":"notifications/message"}' | head -n 100000; says x"#,
        "ok",
    ),
    (
        "an answer to the id as a string",
        r#"printf '{"jsonrpc":"2.0","id":"%s","result":{}}\n' "$id"; says x"#,
        "ok",
    ),
    (
        "a batch",
        r#"printf '[{"jsonrpc":"2.0","id":%s,"result":{}}]\n' "$id"; says x"#,
        "ok",
    ),
    (
        "a request in its place",
        r#"printf '{"jsonrpc":"2.0","id":%s,"method":"ping"}\n' "$id"; says x"#,
        "ok",
    ),
    (
        "no object",
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":[]}\n' "$id"; continue"#,
        "protocol",
    ),
    (
        "a result and an error",
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1}}\n' "$id"; continue"#,
        "protocol",
    ),
    (
        "an error without a code",
        r#"printf '{"jsonrpc":"2.0","id":%s,"error":{}}\n' "$id"; continue"#,
        "protocol",
    ),
    (
        "another version of JSON-RPC",
        r#"printf '{"jsonrpc":"1.0","id":%s,"result":{}}\n' "$id"; continue"#,
        "protocol",
    ),
    (
        "100,000 levels",
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"x":' "$id"
           head -c 100000 /dev/zero | tr '\0' '['; head -c 100000 /dev/zero | tr '\0' ']'
           echo '}}'; continue"#,
        "protocol",
    ),
    (
        "half a character",
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":["\\ud800"]}}\n' "$id"; continue"#,
        "ok",
    ),
    (
        "notifications beside all that follows",
        r#"[ "$floods" ] || { while :; do
               echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
           done & floods=$!; }; says x"#,
        "ok",
    ),
    (
        "its end",
        r#"[ -z "$floods" ] || kill $floods; floods=; says x"#,
        "ok",
    ),
    (
        "20,000 requests",
        r#"yes '{"jsonrpc":"2.0","id":1,"method":"ping"}' | head -n 20000; says x"#,
        "ok",
    ),
];

/// As [`ROWS`], of a server that dies.
const DEATHS: &[(&str, &str)] = &[
    ("ends", "exit 0"),
    ("is killed", "kill -9 $$"),
    ("leaves a process", "sleep 1000 & exit 1"),
    ("closes its output", "exec >&-; exit 0"),
];

/// An answer, cut after this many bytes.
const CUT: &str = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}' "$id" | head -c "#;
/// How many bytes it has at least, without the line break.
const LENGTH: usize = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#.len();

#[tokio::test]
async fn a_child_that_writes_anything_costs_little_and_runs_nothing_twice() {
    let directory = tempfile::tempdir().unwrap();
    let plays = directory.path().join("plays");
    let ran = directory.path().join("plays.ran");
    std::fs::write(&plays, GOOD).unwrap();
    let server = Script {
        call: r#"printf '%s\n' "$line" >> "$argument.ran"; . "$argument""#,
        argument: plays.to_str().unwrap(),
        ..Script::counting(&Value::from(tools().to_vec()))
    };
    let scene = Scene::new(&server.server("bad"), "30s").await;
    let runs = |call: u64| {
        let text = std::fs::read_to_string(&ran).unwrap();
        let call = format!("\"call\":{call}}}");
        text.lines().filter(|line| line.contains(&call)).count()
    };
    for (row, script, reported) in ROWS {
        std::fs::write(&plays, script).unwrap();
        let (_, read) = scene.call("read").await;
        let (pay, paid) = scene.call("pay").await;
        let found = (read.as_str(), paid.as_str(), runs(pay));
        scene.holds(row, found == (reported, reported, 1), &found);
        scene.bounded(row);
        scene.neighbour(row).await;
    }
    let deaths = DEATHS
        .iter()
        .map(|(row, script)| (row.to_string(), script.to_string()));
    // a process that ends again and again is started later each time, so not at every byte
    let cuts = (0..LENGTH).step_by(6).chain([LENGTH - 1]);
    let cuts = cuts.map(|at| (format!("cut at {at}"), format!("{CUT}{at}; exit 0")));
    for (row, script) in deaths.chain(cuts) {
        let row = &*row;
        std::fs::write(&plays, script).unwrap();
        let (pay, paid) = scene.call("pay").await;
        let found = (paid.as_str(), runs(pay));
        scene.holds(row, found == ("outcome_unknown", 1), &found);
        scene.bounded(row);
        std::fs::write(&plays, GOOD).unwrap();
        until("the server is back", || async {
            scene.neighbour(row).await;
            (scene.call("read").await.1 == "ok").then_some(())
        })
        .await;
    }
    scene.ends("children").await;
}
