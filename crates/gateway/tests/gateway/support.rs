//! Starting the binary, and talking to it. Everything that waits has a limit.

use std::future::Future;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

pub(crate) use crate::legacy::{answer_of, message};
pub(crate) use crate::pipe::Pipe;

pub(crate) const CALLWARD: &str = env!("CARGO_BIN_EXE_callward");
pub(crate) const MODERN: &str = "2026-07-28";

pub(crate) type Client = RunningService<RoleClient, ()>;

/// Waits for something that must happen, and fails if it does not: machines that build are slow.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .unwrap_or_else(|_| panic!("{what}: not within a minute"))
}

/// Asks until the answer is there. Each question is a round trip, so this does not spin.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    within(what, async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

pub(crate) fn callward(args: &[&str]) -> Command {
    program(CALLWARD, args)
}

fn program(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        // a machine that builds may report its own doings to a collector
        if name.to_str().is_some_and(|name| name.starts_with("OTEL_")) {
            command.env_remove(name);
        }
    }
    for name in ["CALLWARD_STATE_DIR", "XDG_STATE_HOME", "HOME"] {
        // without them there is no state directory: tests find no gateway of others
        command.env_remove(name);
    }
    command
        .args(args)
        .env_remove("CALLWARD_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs a command to its end.
pub(crate) async fn ends(args: &[&str]) -> Output {
    within(&args.join(" "), callward(args).output())
        .await
        .unwrap()
}

/// Runs a command to its end, with this on its standard input.
pub(crate) async fn fed(args: &[&str], input: &[u8]) -> Output {
    let mut child = callward(args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feed = async {
        // a command that ends early does not read all of it
        let _ = stdin.write_all(input).await;
        drop(stdin);
    };
    let what = args.join(" ");
    let ((), output) = within(&what, async {
        tokio::join!(feed, child.wait_with_output())
    })
    .await;
    output.unwrap()
}

/// Writes a file that lives as long as what is returned.
pub(crate) fn file(content: impl AsRef<[u8]>) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    file
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

pub(crate) async fn signal(name: &str, pid: u32) {
    let status = Command::new("kill")
        .args([name, &pid.to_string()])
        .status()
        .await
        .unwrap();
    assert!(status.success(), "kill {name} {pid}");
}

pub(crate) fn http() -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(tls)
        .build()
        .unwrap()
}

pub(crate) const SERVE: [&str; 4] = ["serve", "--json", "--http", "127.0.0.1:0"];

/// The command that serves a config, and its file; `CALLWARD` in it stands for the binary.
pub(crate) fn serve(config: &str) -> (Command, NamedTempFile) {
    let file = file(config.replace("CALLWARD", CALLWARD));
    let path = file.path().to_str().unwrap();
    let command = callward(&[&SERVE[..], &["--config", path]].concat());
    (command, file)
}

/// A gateway that listens on a port of its own.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    /// Ends in `/mcp`.
    pub(crate) url: String,
    /// The admin address.
    pub(crate) admin: String,
    pub(crate) state: Arc<TempDir>,
    stderr: Lines<BufReader<ChildStderr>>,
    http: reqwest::Client,
    config: Option<NamedTempFile>,
}

impl Gateway {
    /// Serves the embedded sample.
    pub(crate) async fn sample() -> Self {
        Self::started(callward(&SERVE), None, None).await
    }

    /// Serves a config; `CALLWARD` in it stands for the binary.
    pub(crate) async fn configured(config: &str) -> Self {
        Self::with_variables(config, &[]).await
    }

    /// Serves a config with variables in its environment.
    pub(crate) async fn with_variables(config: &str, variables: &[(&str, &str)]) -> Self {
        let (mut command, file) = serve(config);
        command.envs(variables.iter().copied());
        Self::started(command, Some(file), None).await
    }

    /// Serves a config in which results are served for their whole TTL, as if the operator knew all
    /// servers.
    pub(crate) async fn fixed(config: &str) -> Self {
        const FIXED: &str = "[cache]\nfreshness = \"fixed\"\n";
        let config = match config.contains("[cache]\n") {
            true => config.replace("[cache]\n", FIXED),
            false => format!("{config}\n{FIXED}"),
        };
        Self::configured(&config).await
    }

    /// Serves the embedded sample, and records its calls.
    pub(crate) async fn recording(file: &str) -> Self {
        let args = [&SERVE[..], &["--record", file]].concat();
        Self::started(callward(&args), None, None).await
    }

    /// Serves a config where no file can grow beyond `blocks` blocks of 512 bytes: further writes
    /// fail, as they do on a full disk.
    #[cfg(unix)]
    pub(crate) async fn with_small_files(config: &str, blocks: u32) -> Self {
        let (served, file) = serve(config);
        // without the trap, the signal ends the process that writes too much
        let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let mut command = program("sh", &["-c", &limit, "sh", CALLWARD]);
        command.args(served.as_std().get_args());
        Self::started(command, Some(file), None).await
    }

    /// Serves a config, with the state directory of another gateway.
    pub(crate) async fn beside(other: &Self, config: &str) -> Self {
        let (command, file) = serve(config);
        Self::started(command, Some(file), Some(other.state.clone())).await
    }

    async fn started(
        command: Command,
        config: Option<NamedTempFile>,
        state: Option<Arc<TempDir>>,
    ) -> Self {
        let gateway = Self::starting(command, config, state).await;
        until("the start", || async {
            let (_, body) = gateway.get_url(&gateway.public("/readyz")).await;
            (!body.contains("servers are starting")).then_some(())
        })
        .await;
        gateway
    }

    /// Waits for the address only: servers may not have started.
    pub(crate) async fn starting(
        mut command: Command,
        config: Option<NamedTempFile>,
        state: Option<Arc<TempDir>>,
    ) -> Self {
        let state = state.unwrap_or_else(|| Arc::new(tempfile::tempdir().unwrap()));
        command.env("CALLWARD_STATE_DIR", state.path());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = within("the address", stdout.next_line()).await.unwrap();
        let line = line.unwrap_or_else(|| panic!("{command:?} ended before it listened"));
        let listening: Value = serde_json::from_str(&line).unwrap();
        Self {
            child,
            url: listening["listening"].as_str().unwrap().to_owned(),
            admin: listening["admin"].as_str().unwrap().to_owned(),
            state,
            stderr,
            http: http(),
            config,
        }
    }

    /// Returns the path of the config file.
    pub(crate) fn config(&self) -> &str {
        self.config.as_ref().unwrap().path().to_str().unwrap()
    }

    /// Returns the URL of a path on the public listener.
    pub(crate) fn public(&self, path: &str) -> String {
        format!("{}{path}", self.url.strip_suffix("/mcp").unwrap())
    }

    /// Returns the URL of a path on the admin listener.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.admin)
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        self.get_url(&self.at(path)).await
    }

    /// Reads JSON of the admin listener.
    pub(crate) async fn json<T: DeserializeOwned>(&self, path: &str) -> T {
        let (status, body) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Posts to the admin listener, with this content type if there is one.
    pub(crate) async fn post(&self, path: &str, kind: &str, body: &str) -> (u16, String) {
        let mut request = self.http.post(self.at(path)).body(body.to_owned());
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        let sent = request.send();
        let answer = within(path, sent).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Checks that `/metrics` has these lines.
    pub(crate) async fn measures(&self, lines: &[&str]) {
        let (status, page) = self.get("/metrics").await;
        assert_eq!(status, 200);
        for line in lines {
            assert!(
                page.lines().any(|found| found == *line),
                "{line} in\n{page}"
            );
        }
    }

    pub(crate) async fn get_url(&self, url: &str) -> (u16, String) {
        let answer = within(url, self.http.get(url).send()).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Calls a tool by the operator's route: the answer shows the outcome of the call.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let url = self.at(&format!("/api/tools/{tool}/call"));
        let answer = self.http.post(url).json(&arguments).send();
        let answer = within(tool, answer).await.unwrap();
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }

    /// Calls a tool as a modern client does, and returns the JSON-RPC answer.
    pub(crate) async fn mcp(&self, tool: &str, arguments: Value) -> Value {
        let answer = within(tool, self.mcp_request(tool, &arguments).send())
            .await
            .unwrap();
        answer_of(&answer.text().await.unwrap())
    }

    /// Reads an order of the sample as a modern client does.
    pub(crate) async fn order(&self, id: u32) -> Value {
        self.mcp("orders__get_order", json!({ "order_id": id }))
            .await
    }

    /// Reads an order of the sample by the operator's route.
    pub(crate) async fn call_order(&self, id: u32) -> Value {
        self.call("orders__get_order", json!({ "order_id": id }))
            .await
    }

    /// Waits until this many reports run at a server with the sample.
    pub(crate) async fn running(&self, server: &str, reports: u64) {
        let (stats, mut asked) = (format!("{server}__orders_stats"), 0);
        until("the calls in flight", || {
            asked += 1;
            let ask = format!("running {asked}");
            let stats = &stats;
            async move {
                let stats = self.stats(stats, &ask).await;
                (stats["tools"]["sales_report"]["running"] == reports).then_some(())
            }
        })
        .await;
    }

    pub(crate) fn mcp_request(&self, tool: &str, arguments: &Value) -> reqwest::RequestBuilder {
        self.mcp_request_with(tool, arguments, &json!({}))
    }

    /// A call with more in its `_meta`.
    pub(crate) fn mcp_request_with(
        &self,
        tool: &str,
        arguments: &Value,
        meta: &Value,
    ) -> reqwest::RequestBuilder {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let request = self.modern("tools/call", params);
        request.header("mcp-name", tool)
    }

    /// A request of a modern client.
    pub(crate) fn modern(&self, method: &str, mut params: Value) -> reqwest::RequestBuilder {
        let prefix = "io.modelcontextprotocol";
        let meta = &mut params["_meta"];
        meta[format!("{prefix}/protocolVersion")] = MODERN.into();
        meta[format!("{prefix}/clientInfo")] = json!({ "name": "test", "version": "1" });
        meta[format!("{prefix}/clientCapabilities")] = json!({});
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        message(self.http.post(&self.url), &body)
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", method)
    }

    /// Reads the counters of a sample server behind the gateway, past every cache.
    pub(crate) async fn stats(&self, tool: &str, ask: &str) -> Value {
        let answer = self.call(tool, json!({ "ask": ask })).await;
        answer["result"]["structuredContent"].clone()
    }

    pub(crate) async fn connect(&self, mode: ClientLifecycleMode) -> Client {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str());
        let transport = StreamableHttpClientTransport::with_client(http(), config);
        within("connecting", ().serve_with_lifecycle(transport, mode))
            .await
            .unwrap()
    }

    /// Reads on until something is said.
    pub(crate) async fn says(&mut self, what: &str) {
        within(what, async {
            while let Some(line) = self.stderr.next_line().await.unwrap() {
                if line.contains(what) {
                    return;
                }
            }
            panic!("{what}: never said");
        })
        .await;
    }

    /// Ends it as an operator does, and returns what was said on the way.
    pub(crate) async fn stopped(self) -> String {
        signal("-TERM", self.child.id().unwrap()).await;
        let (good, said) = self.ended().await;
        assert!(good, "{said}");
        said
    }

    /// Ends it so that it can do nothing about it.
    pub(crate) async fn killed(&mut self) {
        within("the end", self.child.kill()).await.unwrap();
    }

    /// Waits for the end and returns whether it was a good one, and what was said on the way.
    pub(crate) async fn ended(mut self) -> (bool, String) {
        let mut said = String::new();
        within("the end", async {
            while let Some(line) = self.stderr.next_line().await.unwrap() {
                said.push_str(&line);
                said.push('\n');
            }
        })
        .await;
        let status = within("the end", self.child.wait()).await.unwrap();
        (status.success(), said)
    }
}

pub(crate) async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    let params = CallToolRequestParams::new(tool.to_owned())
        .with_arguments(arguments.as_object().cloned().unwrap());
    within(tool, client.call_tool(params)).await.unwrap()
}
