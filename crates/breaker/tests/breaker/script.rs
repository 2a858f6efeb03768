//! Scripts: calls through the breakers of a server and its tools, on a paused clock.
//!
//! Each row of a table is a name and, in the lines behind `|`, its steps:
//!
//! | step | means |
//! | --- | --- |
//! | `get=ok`, `get=timeout`, `3*get` | calls of a tool that reads, with their outcome |
//! | `get=18s`, `get=open` | a call that a breaker refuses, and until when |
//! | `many:5` | a call of each of `get_0` to `get_4` |
//! | `a<8*get`, `a=ok`, `a!` | calls that go on as `a`; all end; the first is dropped |
//! | `fails:timeout`, `fails:connection_lost/not_sent`, `works` | what the server does |
//! | `takes:1s`, `gate`, `open:2` | its calls take time, or wait |
//! | `+12s` | time passes |
//! | `@server=open`, `@get=closed`, `#get=2` | the state of a breaker, and its failures |
//! | `started=3`, `running=1`, `says:5_failures` | calls at the server; the last error |
//! | `reset`, `force:server`, `hold:server`, `release:server` | what others do |
//! | `conf:probes=3`, `layer:tool`, `layer:server` | settings; one layer alone |
//!
//! `put` must not run twice, `set` is idempotent, and all other tools read.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a script that makes no sense fails the test, which shows the steps so far"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use callward_breaker::{BreakerConfig, BreakerLayer, BreakerSet, Circuit, Subject};
use callward_core::{Delivery, ErrorKind, ServerId, ToolCall, ToolError, ToolName, ToolOutput};
use callward_testkit::{MockService, call, tool};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{advance, sleep};
use tower::util::BoxCloneService;
use tower::{Layer, ServiceExt};

type Outcome = Result<ToolOutput, ToolError>;

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
        let mut scene = Scene::new(&script);
        for step in script {
            println!("    {step}");
            scene.step(step).await;
        }
    }
}

/// What the server does.
#[derive(Default)]
struct Server {
    fault: Option<(ErrorKind, Delivery)>,
    takes: Duration,
    gate: Option<Arc<Semaphore>>,
}

struct Scene {
    set: BreakerSet,
    id: ServerId,
    server: Arc<Mutex<Server>>,
    mock: MockService,
    service: BoxCloneService<ToolCall, ToolOutput, ToolError>,
    running: BTreeMap<String, Vec<JoinHandle<Outcome>>>,
    last: String,
}

impl Scene {
    fn new(script: &[&str]) -> Self {
        let settings = script.iter().filter_map(|step| step.strip_prefix("conf:"));
        let config = settings.fold(BreakerConfig::default(), |config, setting| {
            let (key, value) = setting.split_once('=').unwrap();
            match key {
                "probes" => config.with_probes(value.parse().unwrap()),
                "failures" => config.with_failures(value.parse().unwrap()),
                "failure_rate" => config.with_failure_rate(value.parse().unwrap()),
                "min_calls" => config.with_min_calls(value.parse().unwrap()),
                _ => config.with_slow_calls(time(value), 100),
            }
        });
        let set = BreakerSet::new(config, BreakerConfig::server()).unwrap();
        let id = ServerId::new("a").unwrap();
        let server = Arc::new(Mutex::new(Server::default()));
        let inside = server.clone();
        let mock = MockService::new(move |_, _| {
            let Server { fault, takes, gate } = &*inside.lock();
            let (fault, takes, gate) = (*fault, *takes, gate.clone());
            async move {
                if let Some(gate) = gate {
                    gate.acquire().await.unwrap().forget();
                }
                sleep(takes).await;
                match fault {
                    Some((kind, delivery)) => Err(ToolError::new(kind, delivery, "scripted")),
                    None => Ok(ToolOutput::text("fine")),
                }
            }
        });
        let of_server = BreakerLayer::of_server(set.clone(), id.clone());
        let of_tool = BreakerLayer::new(set.clone(), id.clone());
        let service = match (
            script.contains(&"layer:tool"),
            script.contains(&"layer:server"),
        ) {
            (true, _) => of_tool.layer(mock.clone()).boxed_clone(),
            (_, true) => of_server.layer(mock.clone()).boxed_clone(),
            _ => of_server.layer(of_tool.layer(mock.clone())).boxed_clone(),
        };
        Self {
            set,
            id,
            server,
            mock,
            service,
            running: BTreeMap::new(),
            last: String::new(),
        }
    }

    fn circuit(&self, name: &str) -> Arc<Circuit> {
        let subject = match name {
            "server" => Subject::Server,
            tool => Subject::Tool(ToolName::new(tool).unwrap()),
        };
        self.set.circuit(&self.id, subject)
    }

    async fn step(&mut self, step: &str) {
        let (word, rest) = step.split_once(':').unwrap_or((step, ""));
        match word {
            "conf" | "layer" => {}
            "many" => {
                for n in 0..rest.parse().unwrap() {
                    let _any_outcome = self
                        .service
                        .clone()
                        .oneshot(made(&format!("get_{n}")))
                        .await;
                }
            }
            "fails" => {
                let (kind, delivery) = rest.split_once('/').unwrap_or((rest, ""));
                let kind = serde_json::from_value(json!(kind)).unwrap();
                let delivery = match (delivery, kind) {
                    ("not_sent", _) | (_, ErrorKind::ConnectFailed | ErrorKind::Overloaded) => {
                        Delivery::NotSent
                    }
                    (_, ErrorKind::ConnectionLost | ErrorKind::Timeout | ErrorKind::Cancelled) => {
                        Delivery::Unknown
                    }
                    _ => Delivery::Answered,
                };
                self.server.lock().fault = Some((kind, delivery));
            }
            "works" => self.server.lock().fault = None,
            "takes" => self.server.lock().takes = time(rest),
            "gate" => self.server.lock().gate = Some(Arc::new(Semaphore::new(0))),
            "open" => {
                let gate = self.server.lock().gate.clone();
                gate.unwrap().add_permits(rest.parse().unwrap());
            }
            "says" => {
                let text = rest.replace('_', " ");
                assert!(self.last.contains(&text), "{text}: {}", self.last);
            }
            "reset" => self.set.reset_server(&self.id),
            "force" => self.set.force_open(&self.id, Subject::Server),
            "hold" => self.set.force_closed(&self.id, Subject::Server),
            "release" => self.set.release(&self.id, Subject::Server),
            _ if step.starts_with('+') => advance(time(&step[1..])).await,
            _ => self.calls(step).await,
        }
    }

    async fn calls(&mut self, step: &str) {
        let (what, sign, expected) = match step.find(['=', '<', '!']) {
            Some(at) => (&step[..at], &step[at..=at], &step[at + 1..]),
            None => (step, "", ""),
        };
        let (times, name) = match sign {
            "<" => expected.split_once('*').unwrap_or(("1", expected)),
            _ => what.split_once('*').unwrap_or(("1", what)),
        };
        match (what, sign) {
            ("started", _) => assert_eq!(self.mock.started().to_string(), expected),
            ("running", _) => assert_eq!(self.mock.running().to_string(), expected),
            _ if what.starts_with('@') => {
                assert_eq!(
                    self.circuit(&what[1..]).state().as_str(),
                    expected,
                    "{step}"
                );
            }
            _ if what.starts_with('#') => {
                let all = self.set.snapshot();
                let of = |one: &&_| *one_name(one) == what[1..];
                assert_eq!(all.iter().find(of).unwrap().failures.to_string(), expected);
            }
            (_, "<") => {
                for _ in 0..times.parse().unwrap() {
                    let running = tokio::spawn(self.service.clone().oneshot(made(name)));
                    settle().await;
                    self.running
                        .entry(what.to_owned())
                        .or_default()
                        .push(running);
                }
            }
            (_, "!") => {
                self.running.get_mut(what).unwrap().remove(0).abort();
                settle().await;
            }
            _ => {
                let mut outcomes = Vec::new();
                if let Some(running) = self.running.remove(what) {
                    for one in running {
                        outcomes.push(one.await.unwrap());
                    }
                } else {
                    for _ in 0..times.parse().unwrap() {
                        outcomes.push(self.service.clone().oneshot(made(name)).await);
                    }
                }
                for outcome in outcomes {
                    self.last = outcome
                        .as_ref()
                        .err()
                        .map(ToString::to_string)
                        .unwrap_or_default();
                    let found = shown(&outcome);
                    assert!(sign.is_empty() || found == expected, "{step}: {found}");
                }
            }
        }
    }
}

fn one_name(status: &callward_breaker::BreakerStatus) -> &str {
    status.tool().map_or("server", |tool| tool.as_str())
}

fn made(name: &str) -> ToolCall {
    let built = tool(name);
    let tool = match name {
        "put" => built.destructive(),
        "set" => built.idempotent(),
        _ => built.read_only(),
    };
    call(&tool.build(), json!({}))
}

fn shown(outcome: &Outcome) -> String {
    match outcome {
        Ok(_) => "ok".to_owned(),
        Err(error) if error.kind() == ErrorKind::BreakerOpen => {
            assert_eq!(error.delivery(), Delivery::NotSent);
            let wait = error.retry_after();
            wait.map_or_else(|| "open".to_owned(), |wait| format!("{}s", wait.as_secs()))
        }
        Err(error) => error.kind().to_string(),
    }
}

fn time(text: &str) -> Duration {
    Duration::from_secs(text.trim_end_matches('s').parse().unwrap())
}

async fn settle() {
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}
