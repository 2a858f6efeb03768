//! Raw lines over a pair of pipes.

use std::sync::Arc;

use callward_mcp::server::serve_stdio;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::backend::{Bench, ODD_RESULT};
use crate::http::{INITIALIZE, META, PING, call, cancel, request};

struct Pipe {
    bench: Arc<Bench>,
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    shutdown: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
}

impl Pipe {
    fn open() -> Self {
        let bench = Bench::new();
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        let shutdown = CancellationToken::new();
        let served = serve_stdio(Arc::clone(&bench), reader, writer, shutdown.clone());
        let served = tokio::spawn(served);
        let (output, input) = tokio::io::split(near);
        Self {
            bench,
            input,
            output: BufReader::new(output).lines(),
            shutdown,
            served,
        }
    }

    async fn send(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    async fn line(&mut self) -> String {
        self.output.next_line().await.unwrap().unwrap()
    }

    async fn json(&mut self) -> Value {
        serde_json::from_str(&self.line().await).unwrap()
    }

    async fn ask(&mut self, line: &str) -> Value {
        self.send(line).await;
        self.json().await
    }

    /// Sends a call that is held, and waits until it runs.
    async fn hold(&mut self, id: &str) {
        self.send(&call(id, "hold", "")).await;
        assert_eq!(self.bench.event().await, "started");
    }

    /// Closes the input and returns what still comes, in the order of ids.
    async fn rest(mut self) -> Vec<Value> {
        self.input.shutdown().await.unwrap();
        let mut rest: Vec<Value> = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        self.served.await.unwrap().unwrap();
        rest.sort_by_key(|answer| answer["id"].as_u64());
        rest
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn both_eras_are_served_on_one_pipe() {
    let mut pipe = Pipe::open();
    pipe.send(&call(r#""x\u0041""#, "odd", "")).await;
    let expected = format!(r#"{{"jsonrpc":"2.0","id":"x\u0041","result":{ODD_RESULT}}}"#);
    assert_eq!(pipe.line().await, expected);
    pipe.send(PING).await;
    assert_eq!(pipe.line().await, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    let modern = format!(",{META}");
    let [code, kind] = ["/error/code", "/error/data/kind"];
    let [complete, version] = ["/result/resultType", "/result/protocolVersion"];
    let (empty, initialize) = (json!({"prompts": []}), INITIALIZE.to_owned());
    for (message, shown, expected) in [
        (call("2", "odd", &modern), complete, json!("complete")),
        (request("ping", META), code, json!(-32601)),
        (request("server/discover", ""), code, json!(-32602)),
        (call("7", "asks", ""), code, json!(-33010)),
        (call("8", "pretty", ""), "/result", json!({"content": []})),
        (call("9", "panics", ""), kind, json!("internal")),
        (call("10", "exceeds", ""), kind, json!("rate_limited")),
        (initialize, version, json!("2025-06-18")),
        (request("prompts/list", ""), "/result", empty),
    ] {
        let answer = pipe.ask(&message).await;
        let found = answer.pointer(shown);
        assert_eq!(found, Some(&expected), "{message}: {answer}");
    }
    assert!(pipe.rest().await.is_empty());
}

#[tokio::test]
async fn a_conversation_is_one_session_and_the_next_is_another() {
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let mut pipe = Pipe::open();
        pipe.ask(INITIALIZE).await;
        for id in ["1", "2"] {
            let answer = pipe.ask(&call(id, "seen", "")).await;
            let seen: Value = serde_json::from_str(text(&answer)).unwrap();
            assert_eq!([&seen["principal"], &seen["client"]], ["local", "raw 0"]);
            sessions.push(seen["session"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!((&sessions[0], &sessions[2]), (&sessions[1], &sessions[3]));
    assert_ne!(sessions[0], sessions[2]);
}

#[tokio::test]
async fn a_slow_call_delays_no_other_and_can_be_cancelled() {
    let mut pipe = Pipe::open();
    pipe.hold("1").await;
    assert_eq!(pipe.ask(&call("2", "echo", "")).await["id"], 2);
    pipe.send(&cancel(r#""1""#)).await;
    pipe.send(&cancel("1")).await;
    assert_eq!(pipe.bench.event().await, "dropped");
    assert!(pipe.rest().await.is_empty(), "it gets no answer");
}

#[tokio::test]
async fn progress_comes_in_order_before_the_answer() {
    let mut pipe = Pipe::open();
    pipe.send(&call("1", "steps", r#","_meta":{"progressToken":8}"#))
        .await;
    for step in 1..=3 {
        let report = json!({"progressToken": 8, "progress": f64::from(step)});
        assert_eq!(pipe.json().await["params"], report);
    }
    assert_eq!(text(&pipe.json().await), "done");
}

#[tokio::test]
async fn a_flood_of_calls_is_refused_beyond_a_bound() {
    let mut pipe = Pipe::open();
    for id in 0..1_024 {
        pipe.hold(&id.to_string()).await;
    }
    let refused = pipe.ask(&call("\"over\"", "hold", "")).await;
    assert_eq!(refused["id"], "over");
    assert_eq!(refused["error"]["data"]["kind"], "overloaded");
    assert_eq!(pipe.ask(PING).await["result"], json!({}));
}

#[tokio::test]
async fn a_shutdown_and_a_client_that_leaves_end_the_conversation() {
    for is_shut_down in [true, false] {
        let mut pipe = Pipe::open();
        pipe.hold("1").await;
        let Pipe {
            bench,
            mut input,
            output,
            shutdown,
            served,
        } = pipe;
        if is_shut_down {
            shutdown.cancel();
        } else {
            let echo = call("2", "echo", "") + "\n";
            input.write_all(echo.as_bytes()).await.unwrap();
            drop((input, output));
        }
        served.await.unwrap().unwrap();
        assert_eq!(bench.event().await, "dropped");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_end_the_conversation(
        lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8),
        damage in any::<(prop::sample::Index, u8)>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut pipe = Pipe::open();
            for line in &lines {
                pipe.input.write_all(line).await.unwrap();
                pipe.input.write_all(b"\n").await.unwrap();
            }
            let mut damaged = call("1", "echo", &format!(",{META}")).into_bytes();
            let at = damage.0.index(damaged.len());
            damaged[at] = damage.1;
            pipe.input.write_all(&damaged).await.unwrap();
            pipe.send("").await;
            pipe.send(PING).await;
            while pipe.json().await["id"] != 7 {}
            pipe.rest().await;
        });
    }
}

#[tokio::test]
async fn what_waits_for_the_start_can_be_cancelled_and_holds_nothing_else_up() {
    let mut pipe = Pipe::open();
    pipe.bench.start(false);
    let list = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
    for line in [
        list("1"),
        list("2"),
        call("3", "echo", ""),
        call("4", "echo", ""),
        call("5", "echo", "").replace("tools/call", "prompts/get"),
        cancel("1"),
        cancel("3"),
    ] {
        pipe.send(&line).await;
    }
    assert_eq!(pipe.ask(PING).await["id"], 7);
    pipe.bench.start(true);
    // what is left is answered, also after the input has ended
    let rest = pipe.rest().await;
    let ids: Vec<_> = rest.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [2, 4, 5], "{rest:?}");
    assert!(rest[0]["result"]["tools"].is_array(), "{rest:?}");
    assert_eq!(
        [1, 2].map(|at| text(&rest[at])),
        ["{}", r#"{"name":"echo"}"#]
    );
}

#[tokio::test]
async fn a_line_beyond_16_mib_is_refused_under_its_id() {
    let mut pipe = Pipe::open();
    let long = "x".repeat(17 << 20);
    let ping = format!(r#"{{"jsonrpc":"2.0","method":"ping","params":{{"x":"{long}"}},"id":7}}"#);
    // an answer to nothing that was asked: its id is not one of the client's requests
    let answer = format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{long}"}}"#);
    for (line, id, code) in [
        (long, json!(null), -32700),
        (ping, json!(7), -32600),
        (answer, json!(null), -32700),
    ] {
        let refused = pipe.ask(&line).await;
        let found = [&refused["id"], &refused["error"]["code"]];
        assert_eq!(found, [&id, &json!(code)]);
    }
}
