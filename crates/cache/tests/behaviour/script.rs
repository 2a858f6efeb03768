//! Scripts: calls through a cache around a scripted server, on a paused clock.
//!
//! Each row of a table is a name and, in the lines behind `|`, its steps:
//!
//! | step | means |
//! | --- | --- |
//! | `get=1`, `get~hit`, `get` | a call, with its text or what its record notes |
//! | `asked-get`, `round-get` | a call with a client that may be asked; a further round |
//! | `ann#1/get@other:7^60s` | principal, session, tool, replica set, argument, deadline |
//! | `a<get`, `a<64*get`, `a=1`, `a~joined` | calls that go on as `a`; all end, with this text |
//! | `a!`, `settle` | the first call of `a` is dropped; all tasks run as far as they can |
//! | `+60s-1ns` | time passes |
//! | `server:takes=1s`, `server:gate`, `open:2` | the server's calls take time, or wait |
//! | `server:writes=lost`, `next:lost,error` | its replies to writes, or to the next calls |
//! | `runs=2`, `running=1` | calls that the server saw, and that are inside |
//! | `tools=1`, `written=true` | tools with counts; whether the set is being written |
//! | `retain:test`, `hold:get` | other sets go; a tool is held beyond its calls |
//! | `fill:9` | calls of nine further tools |
//! | `#hits=2`, `mark:reason=timeout` | a count, a member of the mark on the last answer |
//! | `conf:burst=1s`, `state:test=own` | settings |
//! | `reads:get=order:{id}`, `writes:..` | scopes of a tool, at any time |
//! | `profile:learned`, `profile:trusted`, `profile:stated` | the lifetimes of the tools |
//! | `purge:all`, `purge:set`, `purge:tool=get`, `purge:tag=x`, `purge:who=ann` | a purge |
//!
//! The server answers with the number of the call. `reply` lists its other replies.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a script that makes no sense fails the test, which shows the steps so far"
)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use callward_cache::{CacheConfig, ScopeRules, ToolScopes};
use callward_core::{
    CACHE_META, CacheRule, CallRecord, Caller, Delivery, ErrorKind, Learned, Lifetime, Principal,
    Profile, SecurityLevel, SessionId, Tool, ToolCall, ToolError, ToolName, ToolOutput,
};
use callward_testkit::{MockClient, tool};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tower::service_fn;
use tower::util::BoxCloneSyncService;

use crate::common::{Bench, Running, failure, settle};

/// Runs each row of a table in a scene of its own.
pub(crate) async fn check(table: &str) {
    let mut rows: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (line.strip_prefix('|'), rows.last_mut()) {
            (Some(steps), Some((_, script))) => script.extend(steps.split_whitespace()),
            _ => rows.push((line, Vec::new())),
        }
    }
    for (name, script) in rows {
        println!("{name}");
        Scene::default().run(&script).await;
    }
}

#[derive(Default)]
struct Scene {
    settings: Map<String, Value>,
    rules: ScopeRules,
    profile: Profile,
    server: Arc<Mutex<Server>>,
    /// Made by the first step that needs it.
    bench: Option<Bench<Service>>,
    running: BTreeMap<String, Vec<(Running, Arc<CallRecord>)>>,
    held: BTreeMap<String, Arc<Tool>>,
    last: Option<ToolOutput>,
}

type Service = BoxCloneSyncService<ToolCall, ToolOutput, ToolError>;

/// It forgets its calls, as holding a call holds its tool.
#[derive(Default)]
struct Server {
    started: usize,
    running: usize,
    next: VecDeque<String>,
    reads: Option<String>,
    writes: Option<String>,
    takes: Duration,
    gate: Option<Arc<Semaphore>>,
}

impl Server {
    async fn serve(server: Arc<Mutex<Self>>, call: ToolCall) -> Result<ToolOutput, ToolError> {
        let inside = Inside(server.clone());
        let (n, said, takes, gate) = {
            let mut server = server.lock();
            server.started += 1;
            server.running += 1;
            let usual = match call.plan().is_write() {
                true => server.writes.clone(),
                false => server.reads.clone(),
            };
            let said = server.next.pop_front().filter(|said| said != "usual");
            (
                server.started,
                said.or(usual),
                server.takes,
                server.gate.clone(),
            )
        };
        // what a retry layer leaves behind: an attempt that may land late
        if said.as_deref() == Some("retried") {
            let record = call.record.as_ref().unwrap();
            record.with(|facts| facts.started_attempts = 2);
        }
        let asks = (said.as_deref() == Some("asks")).then(|| call.clone());
        drop(call);
        if let Some(gate) = &gate {
            gate.acquire().await.unwrap().forget();
        }
        if let Some(call) = asks {
            MockClient::ask(&call, "").await;
            if let Some(gate) = &gate {
                gate.acquire().await.unwrap().forget();
            }
        }
        if !takes.is_zero() {
            sleep(takes).await;
        }
        let answer = reply(said.as_deref(), n).await;
        drop(inside);
        answer
    }
}

/// A call inside the server.
struct Inside(Arc<Mutex<Server>>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
    }
}

impl Scene {
    async fn run(&mut self, script: &[&str]) {
        for step in script {
            println!("    {step}");
            match step.split_once(':') {
                Some((word, rest)) if self.set(word, rest) => {}
                Some(("fill", count)) => {
                    for n in 0..count.parse().unwrap() {
                        let more = tool(&format!("tool{n}")).read_only().build();
                        let call = ToolCall::new(more, "");
                        self.bench().ask(call).await.unwrap();
                    }
                }
                _ if *step == "settle" => settle().await,
                _ if step.starts_with('+') => tokio::time::advance(time(&step[1..])).await,
                _ => self.call(step).await,
            }
        }
    }

    /// Takes a step with a colon; `false` if it is a call.
    fn set(&mut self, word: &str, rest: &str) -> bool {
        let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
        match word {
            "conf" => {
                let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
                self.settings.insert(key.to_owned(), value);
            }
            "state" => {
                let state = serde_json::from_value(json!(value)).unwrap();
                let set = key.parse().unwrap();
                self.rules = std::mem::take(&mut self.rules).with_state(set, state);
            }
            "reads" | "writes" => self.rule(word, key, value),
            "profile" => {
                let mut learned = Learned::default();
                learned.extends = key == "trusted";
                let lifetime = match key {
                    "stated" => Lifetime::Stated,
                    _ => Lifetime::Learned(learned),
                };
                self.profile.read_ttl = Duration::from_secs(if key == "stated" { 60 } else { 300 });
                self.profile.read_lifetime = lifetime;
                self.profile.idempotent_lifetime = lifetime;
            }
            "server" => {
                let mut server = self.server.lock();
                match key {
                    "takes" => server.takes = time(value),
                    "gate" => server.gate = Some(Arc::new(Semaphore::new(0))),
                    "reads" => server.reads = Some(value.to_owned()),
                    _ => server.writes = Some(value.to_owned()),
                }
            }
            "next" => {
                let replies = rest.split(',').map(str::to_owned);
                self.server.lock().next.extend(replies);
            }
            "open" => {
                let gate = self.server.lock().gate.clone();
                gate.unwrap().add_permits(rest.parse().unwrap());
            }
            "purge" => self.purge(key, value),
            "hold" => drop(self.held.insert(key.to_owned(), self.tool(key))),
            "retain" => {
                let handle = &self.bench().handle;
                handle.retain_sets(|set| set.as_str() == key);
            }
            "mark" => {
                let body = self.last.as_ref().unwrap().body();
                let body: Value = serde_json::from_slice(body).unwrap();
                let mark = &body["_meta"][CACHE_META];
                assert_eq!(plain(&mark[key]), value, "{mark}");
            }
            _ => return false,
        }
        true
    }

    fn rule(&mut self, word: &str, key: &str, value: &str) {
        let tool = self.tool(key);
        let (set, name) = (tool.set().clone(), tool.name().clone());
        let mut scopes = self.rules.of(&set, &name).cloned().unwrap_or_default();
        let named = value.split(',').filter(|scope| !scope.is_empty());
        match word {
            "reads" => scopes.reads = ToolScopes::reading(named).unwrap().reads,
            _ => scopes.writes = ToolScopes::writing(named).unwrap().writes,
        }
        self.rules = std::mem::take(&mut self.rules).with(set, name, scopes);
        if let Some(bench) = &self.bench {
            bench.handle.set_scope_rules(self.rules.clone());
        }
    }

    fn purge(&mut self, key: &str, value: &str) {
        let set = "test".parse().unwrap();
        let handle = &self.bench().handle;
        match key {
            "all" => handle.purge_all(),
            "set" => handle.purge_set(&set),
            "tool" => handle.purge_tool(&set, &ToolName::new(value).unwrap()),
            "tag" => handle.purge_tag(value),
            _ => handle.purge_principal(&Principal::new(value)),
        }
    }

    fn bench(&mut self) -> &Bench<Service> {
        let (settings, rules, server) = (&self.settings, &self.rules, &self.server);
        self.bench.get_or_insert_with(|| {
            let settings = Value::Object(settings.clone());
            let mut config: CacheConfig = serde_json::from_value(settings).unwrap();
            config.scopes = rules.clone();
            let server = server.clone();
            let service = service_fn(move |call| Server::serve(server.clone(), call));
            Bench::with(config, BoxCloneSyncService::new(service))
        })
    }

    /// Makes a call, or looks at one.
    async fn call(&mut self, step: &str) {
        // an argument or an equals sign of JSON belongs to the call
        let (what, sign, expected) = match step.rfind(['=', '~', '<', '!']) {
            Some(at) => (&step[..at], &step[at..=at], &step[at + 1..]),
            None => (step, "", ""),
        };
        self.bench();
        match (what, sign) {
            ("runs" | "running" | "tools" | "written", "=") => {
                let handle = &self.bench().handle;
                let found = match what {
                    "tools" => handle.tools().len().to_string(),
                    "written" => handle.is_written(&"test".parse().unwrap()).to_string(),
                    "runs" => self.server.lock().started.to_string(),
                    _ => self.server.lock().running.to_string(),
                };
                assert_eq!(found, expected, "{step}");
            }
            (name, "=") if name.starts_with('#') => {
                let stats = serde_json::to_value(self.bench().stats()).unwrap();
                let path = format!("/{}", name[1..].replace('.', "/"));
                let found = stats.pointer(&path).map(plain);
                assert_eq!(found.as_deref(), Some(expected), "{step}: {stats}");
            }
            (name, "<") => {
                let (times, what) = expected.split_once('*').unwrap_or(("1", expected));
                for _ in 0..times.parse().unwrap() {
                    let record = Arc::new(CallRecord::new());
                    let call = self.make(what).with_record(record.clone());
                    let running = self.bench().start(call).await;
                    let all = self.running.entry(name.to_owned()).or_default();
                    all.push((running, record));
                }
            }
            (name, "!") => {
                self.running.get_mut(name).unwrap().remove(0).0.abort();
                settle().await;
            }
            (name, _) if self.running.contains_key(name) => {
                for (running, record) in self.running.remove(name).unwrap() {
                    let result = running.await;
                    let found = match result {
                        _ if sign == "~" => record.facts().cache.as_str().to_owned(),
                        Err(error) if error.is_panic() => "panic".to_owned(),
                        result => text(&result.unwrap()),
                    };
                    assert_eq!(found, expected, "{step}");
                }
            }
            _ => {
                let record = Arc::new(CallRecord::new());
                let mut call = self.make(what);
                if sign == "~" {
                    call = call.with_record(record.clone());
                }
                let result = self.bench().ask(call).await;
                let found = match sign {
                    "~" => record.facts().cache.as_str().to_owned(),
                    "=" => text(&result),
                    _ => String::new(),
                };
                self.last = result.ok();
                assert_eq!(found, expected, "{step}");
            }
        }
    }

    fn make(&self, what: &str) -> ToolCall {
        let (what, deadline) = what.split_once('^').unwrap_or((what, ""));
        let (head, argument) = what.split_once(':').unwrap_or((what, ""));
        let (who, name) = head.split_once('/').unwrap_or(("", head));
        let arguments = match argument {
            "" => String::new(),
            // as it is, also what is not JSON
            raw if raw.starts_with(['{', '[']) => raw.replace('_', " "),
            id => {
                let id = serde_json::from_str(id).unwrap_or_else(|_| json!(id));
                json!({ "id": id }).to_string()
            }
        };
        let tool = self.held.get(name).cloned();
        let mut call = ToolCall::new(tool.unwrap_or_else(|| self.tool(name)), arguments);
        if !who.is_empty() {
            let (who, session) = who.split_once('#').unwrap_or((who, ""));
            let mut caller = Caller::new(Principal::new(who));
            if !session.is_empty() {
                caller = caller.with_session(SessionId::new(session));
            }
            call = call.with_caller(Arc::new(caller));
        }
        if name.starts_with("pinned") {
            call = call.pinned_to("replica".parse().unwrap());
        }
        if name.starts_with("asked") {
            call = MockClient::make(call).1;
        }
        if name.starts_with("round") {
            call.context_mut().round = Some(Arc::default());
        }
        match deadline {
            "" => call,
            after => call.with_deadline((Instant::now() + time(after)).into_std()),
        }
    }

    /// Returns a tool; its name determines its hints.
    fn tool(&self, name: &str) -> Arc<Tool> {
        let (name, set) = name.split_once('@').unwrap_or((name, "test"));
        let name = name.split_once('-').map_or(name, |(_, name)| name);
        // another definition of the same tool
        let listed = if name == "untagged" { "tagged" } else { name };
        let built = tool(listed).set(set).profile(self.profile.clone());
        let built = match name {
            "get" | "list" | "untagged" | "volatile" => built.read_only(),
            "tagged" => built
                .read_only()
                .hint(|hints| hints.tags = Some(vec!["orders".into()])),
            "secret" => built
                .read_only()
                .hint(|hints| hints.security_level = Some(SecurityLevel::Restricted)),
            "set" | "rename" | "copy" => built.idempotent(),
            "drop" => built.destructive(),
            _ => built,
        };
        let mut tool = built.build();
        if let (
            "volatile",
            CacheRule::Store {
                ttl,
                lifetime: Lifetime::Learned(mut rule),
            },
        ) = (name, tool.plan().cache)
        {
            let mut plan = (**tool.plan()).clone();
            rule.volatile = true;
            plan.cache = CacheRule::Store {
                ttl,
                lifetime: Lifetime::Learned(rule),
            };
            let (definition, resolved) = (tool.definition.clone(), tool.resolved.clone());
            tool = Arc::new(Tool::new(tool.set().clone(), definition, resolved, plan));
        }
        tool
    }
}

/// Returns what the server answers to its `n`th call.
async fn reply(said: Option<&str>, n: usize) -> Result<ToolOutput, ToolError> {
    let text = ToolOutput::text(n.to_string());
    match said {
        None | Some("retried" | "asks") => Ok(text),
        Some("error") => Ok(ToolOutput::error_text("no")),
        Some("long") => Ok(ToolOutput::text("x".repeat(200))),
        Some("hang") => std::future::pending().await,
        Some("panic") => panic!("as the script says"),
        Some("unsent") => Err(failure(Delivery::NotSent)),
        Some("answered") => Err(failure(Delivery::Answered)),
        Some("lost") => Err(failure(Delivery::Unknown)),
        Some("refused") => {
            let error = ToolError::new(ErrorKind::InvalidCall, Delivery::Answered, "refused");
            Err(error.with_code(-32601))
        }
        // other members beside the text
        Some(members) if members.starts_with('{') => {
            let mut body: Value = serde_json::from_slice(text.body()).unwrap();
            let members: Map<String, Value> = serde_json::from_str(members).unwrap();
            body.as_object_mut().unwrap().extend(members);
            Ok(ToolOutput::from_json(body.to_string()).unwrap())
        }
        Some(kind) => {
            let kind = serde_json::from_value(json!(kind)).unwrap();
            Err(ToolError::new(kind, Delivery::Unknown, "failed"))
        }
    }
}

fn text(result: &Result<ToolOutput, ToolError>) -> String {
    match result {
        Ok(output) => output.to_text(),
        Err(error) => error.message.to_string(),
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Reads `300s`, or `300s-1ns`.
fn time(text: &str) -> Duration {
    let (more, less) = text.split_once('-').unwrap_or((text, "0s"));
    let one = |text: &str| {
        let unit = text.find(|digit: char| !digit.is_ascii_digit()).unwrap();
        let number: u64 = text[..unit].parse().unwrap();
        match &text[unit..] {
            "ns" => Duration::from_nanos(number),
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            unit => panic!("{unit} is not a unit"),
        }
    };
    one(more) - one(less)
}
