//! A server on a pipe that writes invalid answers, or none.

use serde_json::Value;

use super::{Scene, tools};
use crate::scripted::Script;
use crate::support::until;

const GOOD: &str = r#"says "did it""#;

/// Each row: its name, what both tools get, and what the server does on a call. `JSON` stands for
/// the first member of a message. A server that dies is called once.
const ROWS: &str = r#"
an invalid line => ok => echo nonsense; says x
empty lines => ok => printf '\n\n\r\n\n'; says x
invalid UTF-8 => ok => printf '\377\376\300\n'; says x
an answer without a request => ok => echo '{JSON"id":999999,"result":{}}'; says x
an answer to no id => ok => echo '{JSON"id":null,"result":{}}'; says x
answered twice => ok => printf '{JSON"id":%s,"result":{"content":[]}}\n' "$id"; says x
a line of 100 MB => ok => head -c 100000000 /dev/zero | tr '\0' x; echo; says x
an answer of 100 MB => too_large => printf '{JSON"id":%s,"result":{"content":"' "$id";
    head -c 100000000 /dev/zero | tr '\0' x; echo '"}}'; continue
100 MB on standard error => ok => head -c 100000000 /dev/zero | tr '\0' x >&2; says x
100,000 notifications => ok => yes '{JSON"method":"notifications/message"}' | head -n 100000; says x
an answer to the id as a string => ok => printf '{JSON"id":"%s","result":{}}\n' "$id"; says x
a batch => ok => printf '[{JSON"id":%s,"result":{}}]\n' "$id"; says x
a request in its place => ok => printf '{JSON"id":%s,"method":"ping"}\n' "$id"; says x
no object => protocol => printf '{JSON"id":%s,"result":[]}\n' "$id"; continue
a result and an error => protocol =>
    printf '{JSON"id":%s,"result":{},"error":{"code":1}}\n' "$id"; continue
an error without a code => protocol => printf '{JSON"id":%s,"error":{}}\n' "$id"; continue
another version of JSON-RPC => protocol =>
    printf '{"jsonrpc":"1.0","id":%s,"result":{}}\n' "$id"; continue
100,000 levels => protocol => printf '{JSON"id":%s,"result":{"content":[],"x":' "$id";
    head -c 100000 /dev/zero | tr '\0' '['; head -c 100000 /dev/zero | tr '\0' ']';
    echo '}}'; continue
half a character => ok => printf '{JSON"id":%s,"result":{"content":["\\ud800"]}}\n' "$id"; continue
notifications beside all that follows => ok => [ "$floods" ] || { while :; do
    echo '{JSON"method":"notifications/tools/list_changed"}'; done & floods=$!; }; says x
its end => ok => [ -z "$floods" ] || kill $floods; floods=; says x
20,000 requests => ok => yes '{JSON"id":1,"method":"ping"}' | head -n 20000; says x
"#;

/// As [`ROWS`], of a server that dies.
const DEATHS: [&str; 4] = [
    "ends => exit 0",
    "is killed => kill -9 $$",
    "leaves a process => sleep 1000 & exit 1",
    "closes its output => exec >&-; exit 0",
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
    let scene = Scene::new(&server.server("bad"), "30s", "1MiB").await;
    let runs = |call: u64| {
        let text = std::fs::read_to_string(&ran).unwrap();
        let call = format!("\"call\":{call}}}");
        text.lines().filter(|line| line.contains(&call)).count()
    };
    let rows = ROWS
        .replace("\n    ", " ")
        .replace("{JSON", r#"{"jsonrpc":"2.0","#);
    for row in rows.trim().lines() {
        let parts: Vec<_> = row.splitn(3, " => ").collect();
        let [row, reported, script] = parts[..] else {
            panic!("not a row: {row}");
        };
        std::fs::write(&plays, script).unwrap();
        let (_, read) = scene.call("read").await;
        let (pay, paid) = scene.call("pay").await;
        let found = (read.as_str(), paid.as_str(), runs(pay));
        scene.holds(row, found == (reported, reported, 1), &found);
        scene.bounded(row).await;
    }
    let deaths = DEATHS.iter().map(|death| {
        let (row, script) = death.split_once(" => ").unwrap();
        (row.to_owned(), script.to_owned())
    });
    // a process that ends again and again is started later each time, so not at every byte
    let cuts = (0..LENGTH).step_by(16).chain([LENGTH - 1]);
    let cuts = cuts.map(|at| (format!("cut at {at}"), format!("{CUT}{at}; exit 0")));
    for (row, script) in deaths.chain(cuts) {
        let row = &*row;
        std::fs::write(&plays, script).unwrap();
        let (pay, paid) = scene.call("pay").await;
        let found = (paid.as_str(), runs(pay));
        scene.holds(row, found == ("outcome_unknown", 1), &found);
        scene.bounded(row).await;
        std::fs::write(&plays, GOOD).unwrap();
        until("the server is back", || async {
            scene.neighbour(row).await;
            (scene.call("read").await.1 == "ok").then_some(())
        })
        .await;
    }
    scene.ends("children").await;
}
