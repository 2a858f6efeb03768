//! Starting the binary, and talking to it. Everything that waits has a limit.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use reqwest::RequestBuilder;
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
use tokio::task::JoinHandle;

pub(crate) use crate::clients::{Legacy, Pipe, answer_of, message};

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

pub(crate) fn program(program: &str, args: &[&str]) -> Command {
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
    fed(args, b"").await
}

/// Runs a command to its end, with this on its standard input.
pub(crate) async fn fed(args: &[&str], input: &[u8]) -> Output {
    let mut child = callward(args).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feed = async move {
        // a command that ends early does not read all of it
        let _ = stdin.write_all(input).await;
    };
    let what = args.join(" ");
    let all = async { tokio::join!(feed, child.wait_with_output()).1 };
    within(&what, all).await.unwrap()
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
    let mut kill = Command::new("kill");
    let status = kill.args([name, &pid.to_string()]).status().await;
    assert!(status.unwrap().success(), "kill {name} {pid}");
}

pub(crate) fn http() -> reqwest::Client {
    let roots = trusting(rustls::RootCertStore::empty());
    http_over(roots.with_no_client_auth())
}

/// The settings of a TLS client that trusts these authorities.
pub(crate) fn trusting(
    roots: rustls::RootCertStore,
) -> rustls::ConfigBuilder<rustls::ClientConfig, rustls::client::WantsClientCert> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
}

pub(crate) fn http_over(tls: rustls::ClientConfig) -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(tls)
        .build()
        .unwrap()
}

pub(crate) const SERVE: [&str; 4] = ["serve", "--json", "--http", "127.0.0.1:0"];

/// The lines of a config that name a server with the sample; more of its keys may follow.
pub(crate) fn sample(name: &str) -> String {
    format!("[servers.{name}]\ncommand = \"CALLWARD\"\nargs = [\"sample\"]\n")
}

/// Returns the result of an answer, and fails if it is an error.
pub(crate) fn result(answer: &Value) -> &Value {
    assert!(answer["result"].is_object(), "{answer}");
    &answer["result"]
}

/// Returns the first text of the result of an answer.
pub(crate) fn said(answer: &Value) -> &str {
    let said = result(answer)["content"][0]["text"].as_str();
    said.unwrap_or_else(|| panic!("{answer}"))
}

/// The command that serves a config, and its file; `CALLWARD` in it stands for the binary.
pub(crate) fn serve(config: &str) -> (Command, NamedTempFile) {
    let file = file(config.replace("CALLWARD", CALLWARD));
    let path = file.path().to_str().unwrap();
    let command = callward(&[&SERVE[..], &["--config", path]].concat());
    (command, file)
}

/// Sends a request, and returns the status and the body of its answer.
pub(crate) async fn answered(request: RequestBuilder) -> (u16, String) {
    let answer = within("an answer", request.send()).await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// What running gateways wrote into a state directory, with the file of each.
pub(crate) fn registered(state: &Path) -> Vec<(PathBuf, Value)> {
    let entries = std::fs::read_dir(state.join("gateways")).into_iter();
    let paths = entries.flatten().map(|entry| entry.unwrap().path());
    let read = |path: &PathBuf| serde_json::from_slice(&std::fs::read(path).ok()?).ok();
    paths
        .filter_map(|path| Some((path.clone(), read(&path)?)))
        .collect()
}

/// A gateway that listens on a port of its own.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    /// Ends in `/mcp`.
    pub(crate) url: String,
    /// The admin address.
    pub(crate) admin: String,
    /// The operator's token; empty if the admin listener needs none.
    pub(crate) token: String,
    pub(crate) state: Arc<TempDir>,
    stderr: Lines<BufReader<ChildStderr>>,
    pub(crate) http: reqwest::Client,
    config: Option<NamedTempFile>,
    asked: AtomicU32,
}

impl Gateway {
    /// Serves the embedded sample.
    pub(crate) async fn sample() -> Self {
        Self::started(callward(&SERVE), None, None).await
    }

    /// Serves a config; `CALLWARD` in it stands for the binary.
    pub(crate) async fn configured(config: &str) -> Self {
        let (command, file) = serve(config);
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

    /// Waits until the servers have started, or could not.
    pub(crate) async fn started(
        command: Command,
        config: Option<NamedTempFile>,
        state: Option<Arc<TempDir>>,
    ) -> Self {
        let gateway = Self::starting(command, config, state).await;
        gateway.has_started().await;
        gateway
    }

    /// Serves a config whose listener this client trusts.
    pub(crate) async fn trusted(config: &str, http: reqwest::Client) -> Self {
        Self::served(serve(config), http).await
    }

    /// Runs what serves a config, and talks to its listener with this client.
    pub(crate) async fn served(
        (command, file): (Command, NamedTempFile),
        http: reqwest::Client,
    ) -> Self {
        let gateway = Self::starting(command, Some(file), None).await;
        let gateway = Self { http, ..gateway };
        gateway.has_started().await;
        gateway
    }

    async fn has_started(&self) {
        until("the start", || async {
            let (_, body) = self.get_url(&self.public("/readyz")).await;
            (!body.contains("servers are starting")).then_some(())
        })
        .await;
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
        let admin = listening["admin"].as_str().unwrap().to_owned();
        let registered = registered(state.path()).into_iter();
        let registered = registered
            .map(|(_, one)| one)
            .find(|one| one["admin"] == admin);
        let token = registered.and_then(|one| Some(one["token"].as_str()?.to_owned()));
        Self {
            child,
            url: listening["listening"].as_str().unwrap().to_owned(),
            admin,
            token: token.unwrap_or_default(),
            state,
            stderr,
            http: http(),
            config,
            asked: AtomicU32::new(0),
        }
    }

    /// The option by which a command finds this gateway.
    pub(crate) fn here(&self) -> [&str; 2] {
        ["--state-dir", self.state.path().to_str().unwrap()]
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

    pub(crate) async fn get_url(&self, url: &str) -> (u16, String) {
        let request = self.http.get(url);
        let is_admin = url.starts_with(&self.admin);
        answered(if is_admin {
            request.bearer_auth(&self.token)
        } else {
            request
        })
        .await
    }

    /// Reads JSON of the admin listener.
    pub(crate) async fn json<T: DeserializeOwned>(&self, path: &str) -> T {
        let (status, body) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Posts to the admin listener, with this content type if there is one.
    pub(crate) async fn post(&self, path: &str, kind: &str, body: &str) -> (u16, String) {
        let request = self.http.post(self.at(path)).bearer_auth(&self.token);
        let mut request = request.body(body.to_owned());
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        answered(request).await
    }

    /// Checks that `/metrics` has these lines.
    pub(crate) async fn measures(&self, lines: &[&str]) {
        let (status, page) = self.get("/metrics").await;
        assert_eq!(status, 200);
        for line in lines {
            let is_there = page.lines().any(|found| found == *line);
            assert!(is_there, "{line} in\n{page}");
        }
    }

    /// Calls a tool by the operator's route: the answer shows the outcome of the call.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let url = self.at(&format!("/api/tools/{tool}/call"));
        let request = self.http.post(url).bearer_auth(&self.token);
        let (_, body) = answered(request.json(&arguments)).await;
        serde_json::from_str(&body).unwrap()
    }

    /// Calls a tool as a modern client does, and returns the JSON-RPC answer.
    pub(crate) async fn mcp(&self, tool: &str, arguments: Value) -> Value {
        self.mcp_with(tool, &arguments, &json!({})).await
    }

    /// A call with more in its `_meta`.
    pub(crate) async fn mcp_with(&self, tool: &str, arguments: &Value, meta: &Value) -> Value {
        let (_, body) = answered(self.mcp_request(tool, arguments, meta)).await;
        answer_of(&body)
    }

    /// Reads an order of the sample as a modern client does.
    pub(crate) async fn order(&self, id: u32) -> Value {
        let order = json!({ "order_id": id });
        self.mcp("orders__get_order", order).await
    }

    /// Reads an order of the sample by the operator's route.
    pub(crate) async fn call_order(&self, id: u32) -> Value {
        let order = json!({ "order_id": id });
        self.call("orders__get_order", order).await
    }

    /// Waits until this many reports run at a server with the sample.
    pub(crate) async fn running(&self, server: &str, reports: u64) {
        until("the calls in flight", || async {
            let stats = self.stats(server).await;
            (stats["tools"]["sales_report"]["running"] == reports).then_some(())
        })
        .await;
    }

    /// Begins to call a tool, until the task is aborted.
    pub(crate) fn begin(&self, tool: &str, arguments: &Value) -> JoinHandle<(u16, String)> {
        tokio::spawn(answered(self.mcp_request(tool, arguments, &json!({}))))
    }

    pub(crate) fn mcp_request(
        &self,
        tool: &str,
        arguments: &Value,
        meta: &Value,
    ) -> RequestBuilder {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let request = self.modern("tools/call", params);
        request.header("mcp-name", tool)
    }

    /// A request of a modern client.
    pub(crate) fn modern(&self, method: &str, params: Value) -> RequestBuilder {
        self.modern_of(method, params, json!({}))
    }

    /// The same, of a client with these capabilities.
    pub(crate) fn modern_of(
        &self,
        method: &str,
        mut params: Value,
        capabilities: Value,
    ) -> RequestBuilder {
        let prefix = "io.modelcontextprotocol";
        let meta = &mut params["_meta"];
        meta[format!("{prefix}/protocolVersion")] = MODERN.into();
        meta[format!("{prefix}/clientInfo")] = json!({ "name": "test", "version": "1" });
        meta[format!("{prefix}/clientCapabilities")] = capabilities;
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        message(self.http.post(&self.url), &body)
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", method)
    }

    /// Reads the counters of a sample server behind the gateway, past every cache.
    pub(crate) async fn stats(&self, server: &str) -> Value {
        let ask = self.asked.fetch_add(1, Ordering::Relaxed).to_string();
        let tool = format!("{server}__orders_stats");
        let answer = self.call(&tool, json!({ "ask": ask })).await;
        answer["result"]["structuredContent"].clone()
    }

    pub(crate) async fn connect(&self, mode: ClientLifecycleMode) -> Client {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str());
        let transport = StreamableHttpClientTransport::with_client(http(), config);
        let connected = within("connecting", ().serve_with_lifecycle(transport, mode)).await;
        connected.unwrap()
    }

    pub(crate) async fn signal(&self, name: &str) {
        signal(name, self.child.id().unwrap()).await;
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
        self.signal("-TERM").await;
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

/// Returns how many files, sockets and pipes a gateway has open.
pub(crate) fn descriptors(gateway: &Gateway) -> usize {
    let process = gateway.child.id().unwrap();
    std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

pub(crate) async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    let params = CallToolRequestParams::new(tool.to_owned())
        .with_arguments(arguments.as_object().cloned().unwrap());
    within(tool, client.call_tool(params)).await.unwrap()
}
