//! A client over pipes.

use std::collections::HashMap;
use std::process::Stdio;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::scripted::Script;
use crate::support::{callward, within};

/// A client over pipes that sees the very lines.
pub(crate) struct Pipe {
    pub(crate) child: Child,
    /// The answer to the greeting.
    pub(crate) hello: Value,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    next: u64,
    early: HashMap<u64, String>,
}

impl Pipe {
    /// Starts a server and greets it as a legacy client.
    pub(crate) async fn open(args: &[&str]) -> Self {
        Self::open_with(args, &[]).await
    }

    /// Wraps a scripted server.
    pub(crate) async fn around(script: &Script<'_>) -> Self {
        let command = script.command();
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        Self::open(&[&["run", "--ttl", "5m", "--"], &command[..]].concat()).await
    }

    /// As [`open`](Self::open), with more in the environment.
    pub(crate) async fn open_with(args: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = callward(args);
        command.envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = Self {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
            hello: Value::Null,
            next: 0,
            early: HashMap::new(),
        };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let id = pipe.send("initialize", hello).await;
        pipe.hello = serde_json::from_str(&pipe.answer(id).await).unwrap();
        pipe.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        pipe
    }

    async fn write(&mut self, message: &Value) {
        self.stdin
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }

    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.write(&message).await;
        self.next
    }

    /// Waits for one answer. Every line on the way must be a JSON-RPC message.
    pub(crate) async fn answer(&mut self, id: u64) -> String {
        loop {
            if let Some(line) = self.early.remove(&id) {
                return line;
            }
            let line = within("an answer", self.stdout.next_line())
                .await
                .unwrap()
                .unwrap();
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if let Some(id) = message["id"].as_u64() {
                self.early.insert(id, line);
            }
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        serde_json::from_str(&self.answer(id).await).unwrap()
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
        .await
    }

    /// Lists the tools as raw text, each as it came.
    pub(crate) async fn raw_tools(&mut self) -> Vec<String> {
        #[derive(serde::Deserialize)]
        struct Answer {
            result: List,
        }
        #[derive(serde::Deserialize)]
        struct List {
            tools: Vec<Box<RawValue>>,
        }
        let id = self.send("tools/list", json!({})).await;
        let answer: Answer = serde_json::from_str(&self.answer(id).await).unwrap();
        answer
            .result
            .tools
            .iter()
            .map(|tool| tool.get().to_owned())
            .collect()
    }

    /// Closes the input and waits for the end.
    pub(crate) async fn close(self) -> bool {
        let Self {
            mut child, stdin, ..
        } = self;
        drop(stdin);
        within("the end", child.wait()).await.unwrap().success()
    }
}
