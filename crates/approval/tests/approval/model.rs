//! Random sequences of calls, decisions, time, failures and crashes: no call runs more often than
//! it was approved, and none with other arguments.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use callward_approval::{
    Approval, ApprovalConfig, ApprovalLayer, Approvals, Asked, Grant, LocalStore, State,
};
use callward_core::{Delivery, ErrorKind, Principal, Tool, ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, tool};
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::task::JoinHandle;
use tower::{Layer, ServiceExt};

use crate::bed::{Flaky, Output, by, decision, settle};

#[derive(Debug, Clone, Copy)]
enum Op {
    /// A call at a process: principal, definition, arguments and their spelling, and its fate.
    Ask(usize, usize, usize, usize, Fate),
    /// A decision about one of the requests, taken at a process.
    Decide(usize, usize, bool),
    Withdraw(usize, usize),
    /// A grant at a process: definition, arguments, of whom, its uses, and for how many seconds.
    Grant(usize, usize, usize, Option<usize>, u32, u64),
    /// One of the grants is taken back.
    Revoke(usize, usize),
    /// A caller leaves.
    Leave(usize),
    /// Seconds pass.
    Pass(u64),
    /// The store of a process fails, or works again.
    Down(usize, bool),
    /// A process ends without a trace, and starts again.
    Crash(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Done,
    Failed,
    NotSent,
    Unknown,
    Hangs,
}

fn op() -> impl Strategy<Value = Op> {
    use Fate::{Done, Failed, Hangs, NotSent, Unknown};
    let fate = prop::sample::select(vec![Done, Failed, NotSent, Unknown, Hangs, Hangs]);
    let grants_last = prop::sample::select(vec![30_u64, 300, 3_600]);
    let pass = prop::sample::select(vec![1_u64, 1, 20, 49, 60, 301, 840, 901]);
    // most calls are equal, so that one may take what is another's
    let few = || prop::sample::select(vec![0_usize, 0, 0, 0, 1]);
    let json = prop::sample::select(vec![0_usize, 0, 1, 1, 2, 3]);
    let which = || prop::sample::select(vec![0_usize, 0, 0, 1, 2, 3]);
    prop_oneof![
        6 => (0..2_usize, few(), few(), json, fate)
            .prop_map(|(at, who, tool, json, fate)| Op::Ask(at, who, tool, json, fate)),
        6 => (0..2_usize, which(), prop::bool::weighted(0.9))
            .prop_map(|(at, which, yes)| Op::Decide(at, which, yes)),
        1 => (0..2_usize, which()).prop_map(|(at, which)| Op::Withdraw(at, which)),
        2 => (0..2_usize, few(), 0..2_usize, prop::option::of(0..2_usize), 0..4_u32, grants_last)
            .prop_map(|(at, tool, json, who, uses, last)| Op::Grant(at, tool, json, who, uses, last)),
        1 => (0..2_usize, which()).prop_map(|(at, which)| Op::Revoke(at, which)),
        2 => which().prop_map(Op::Leave),
        2 => pass.prop_map(Op::Pass),
        1 => (0..2_usize, prop::bool::weighted(0.3))
            .prop_map(|(at, down)| Op::Down(at, down)),
        2 => (0..2_usize).prop_map(Op::Crash),
    ]
}

/// Two values, each spelled in two ways.
const ARGUMENTS: [&str; 4] = [
    r#"{"a":1,"b":2}"#,
    r#"{ "b" : 2, "\u0061" : 1 }"#,
    r#"{"a":1,"b":3}"#,
    r#"{"b":3,"a":1}"#,
];

struct Process {
    store: Flaky,
    approvals: Approvals,
    service: Approval<MockService>,
    calls: Vec<JoinHandle<Output>>,
}

struct World {
    store: LocalStore,
    server: MockService,
    fates: Arc<Mutex<HashMap<u64, Fate>>>,
    processes: Vec<Process>,
    tools: [Arc<Tool>; 2],
    /// The digest of the first definition.
    definition: Arc<str>,
    approved: HashMap<Call, usize>,
    grants: Vec<Granted>,
    /// The call of each number, with canonical arguments.
    asked: HashMap<u64, Call>,
}

/// Principal, definition and arguments.
type Call = (String, bool, String);

/// Definition, arguments, of whom (`None`: of all), and uses.
type Granted = (bool, String, Option<String>, usize);

/// The number of a call is its id, so that its fate is found at the server.
fn number(call: &ToolCall) -> u64 {
    call.id.as_deref().unwrap().parse().unwrap()
}

impl World {
    async fn new() -> Self {
        let fates: Arc<Mutex<HashMap<u64, Fate>>> = Arc::default();
        let known = fates.clone();
        let server = MockService::new(move |call, _| {
            let fate = known.lock()[&number(&call)];
            async move {
                let error = |delivery| ToolError::new(ErrorKind::Timeout, delivery, "x");
                match fate {
                    Fate::Done => Ok(ToolOutput::text("done")),
                    Fate::Failed => Ok(ToolOutput::error_text("no")),
                    Fate::NotSent => Err(error(Delivery::NotSent)),
                    Fate::Unknown => Err(error(Delivery::Unknown)),
                    Fate::Hangs => std::future::pending().await,
                }
            }
        });
        let changed = tool("wipe").destructive().hint(|hints| {
            hints.open_world_hint = Some(true);
        });
        let tools = [tool("wipe").destructive().build(), changed.build()];
        let first = ToolCall::new(tools[0].clone(), "");
        let mut world = Self {
            definition: Asked::of(&first, "x").unwrap().definition,
            store: LocalStore::default(),
            server,
            fates,
            processes: Vec::new(),
            tools,
            approved: HashMap::new(),
            grants: Vec::new(),
            asked: HashMap::new(),
        };
        for at in 0..2 {
            let process = world.start(at).await;
            world.processes.push(process);
        }
        world
    }

    async fn start(&self, at: usize) -> Process {
        let store = Flaky {
            inner: self.store.clone(),
            ..Flaky::default()
        };
        let mut config = ApprovalConfig::default();
        config.instance = at.to_string();
        let approvals = Approvals::open(store.clone(), config).await.unwrap();
        let service = ApprovalLayer::from(approvals.clone()).layer(self.server.clone());
        Process {
            store,
            approvals,
            service,
            calls: Vec::new(),
        }
    }

    /// Returns one of the latest requests of the store.
    async fn request(&self, which: usize) -> Option<Arc<callward_approval::Request>> {
        use callward_approval::Store as _;
        let all = self.store.list().await.unwrap();
        all.into_iter().rev().nth(which)
    }

    async fn step(&mut self, number: usize, op: Op) {
        match op {
            Op::Ask(at, who, tool, json, fate) => {
                let number = u64::try_from(number).unwrap();
                let who = ["ada", "bob"][who];
                let arguments = ARGUMENTS[json / 2 * 2].to_owned();
                self.asked
                    .insert(number, (who.to_owned(), tool == 1, arguments));
                self.fates.lock().insert(number, fate);
                let call = ToolCall::new(self.tools[tool].clone(), ARGUMENTS[json]);
                let mut call = call.with_caller(by(who));
                call.context_mut().id = Some(number.to_string().into());
                let process = &mut self.processes[at];
                let running = process.service.clone().oneshot(call);
                process.calls.push(tokio::spawn(running));
            }
            Op::Decide(at, which, yes) => {
                if let Some(request) = self.request(which).await {
                    let approvals = &self.processes[at].approvals;
                    let decided = approvals.decide(&request.id, decision(yes, None)).await;
                    if yes && decided.is_ok() {
                        let who = request.asked.principal.to_string();
                        let is_changed = request.asked.definition != self.definition;
                        let call = (who, is_changed, request.asked.arguments.to_string());
                        *self.approved.entry(call).or_default() += 1;
                    }
                }
            }
            Op::Withdraw(at, which) => {
                if let Some(request) = self.request(which).await {
                    let by: Principal = request.asked.principal.clone();
                    let _ = self.processes[at].approvals.withdraw(&request.id, by).await;
                }
            }
            Op::Grant(at, tool, json, who, uses, last) => {
                let arguments = ARGUMENTS[json * 2];
                let who = who.map(|who| ["ada", "bob"][who].to_owned());
                let mut grant = Grant::new(&self.tools[tool], Principal::new("ops")).unwrap();
                let when: serde_json::Value = serde_json::from_str(arguments).unwrap();
                grant.when = Some(when.try_into().unwrap());
                grant.principal = who.clone().map(Principal::new);
                // 0 stands for any number
                grant.uses = NonZeroU32::new(uses);
                let grant = grant.lasting(Duration::from_secs(last));
                let uses = grant.uses.map_or(usize::MAX, |uses| uses.get() as usize);
                if self.processes[at].approvals.grant(grant).await.is_ok() {
                    let arguments = arguments.to_owned();
                    self.grants.push((tool == 1, arguments, who, uses));
                }
            }
            Op::Revoke(at, which) => {
                let approvals = &self.processes[at].approvals;
                let all = approvals.grants().await.unwrap_or_default();
                if let Some(grant) = all.get(which) {
                    let _ = approvals.revoke(&grant.id).await;
                }
            }
            Op::Leave(which) => {
                let calls = self.processes.iter().flat_map(|process| &process.calls);
                let mut calls = calls.filter(|call| !call.is_finished());
                if let Some(call) = calls.nth(which) {
                    call.abort();
                }
            }
            Op::Pass(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            Op::Down(at, is_down) => self.processes[at].store.set_down(is_down),
            Op::Crash(at) => {
                let process = &self.processes[at];
                // nothing that runs on in this test reaches the store any more
                process.store.set_down(true);
                process.calls.iter().for_each(JoinHandle::abort);
                self.processes[at] = self.start(at).await;
            }
        }
        settle().await;
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let fates = self.fates.lock();
        let mut ran: HashMap<Call, usize> = HashMap::new();
        for call in self.server.seen() {
            let asked = &self.asked[&number(&call)];
            let who = call.caller().principal.to_string();
            let is_changed = call.tool().digest() == self.tools[1].digest();
            let arguments = String::from_utf8(call.arguments().to_vec()).unwrap();
            let sent = (who, is_changed, arguments);
            prop_assert_eq!(asked, &sent, "it is another call than the caller's");
            let is_granted = self.grants.iter().any(|grant| fits(grant, &sent));
            prop_assert!(
                is_granted || self.approved.contains_key(&sent),
                "not approved"
            );
            let runs = fates[&number(&call)] != Fate::NotSent;
            *ran.entry(sent).or_default() += usize::from(runs);
        }
        // what exceeds the approvals used grants; each call may use those that fit
        let mut granted: HashMap<usize, usize> = HashMap::new();
        for (key, ran) in &ran {
            let over = ran.saturating_sub(self.approved.get(key).copied().unwrap_or_default());
            let fitting = self.grants.iter().enumerate();
            let fitting = fitting.filter(|(_, grant)| fits(grant, key));
            let uses = fitting.clone().map(|(_, grant)| grant.3);
            let uses = uses.fold(0, usize::saturating_add);
            prop_assert!(over <= uses, "it ran more often than approved and granted");
            // a lone grant answers for all callers together
            if let [(at, _)] = fitting.collect::<Vec<_>>()[..] {
                *granted.entry(at).or_default() += over;
            }
        }
        for (at, used) in granted {
            prop_assert!(used <= self.grants[at].3, "a grant was used too often");
        }
        Ok(())
    }
}

/// Returns whether a grant is for a call.
fn fits(grant: &Granted, call: &Call) -> bool {
    let (definition, arguments, who, ..) = grant;
    (definition, arguments) == (&call.1, &call.2) && who.as_ref().is_none_or(|who| *who == call.0)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("APPROVAL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn executions_never_exceed_approvals(ops in prop::collection::vec(op(), 1..50)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for (number, op) in ops.into_iter().enumerate() {
                world.step(number, op).await;
                world.check()?;
            }
            for at in 0..2 {
                world.step(0, Op::Crash(at)).await;
            }
            let all = world.processes[0].approvals.list().await.unwrap();
            prop_assert!(all.iter().all(|request| request.state != State::Consumed));
            world.check()
        })?;
    }
}
