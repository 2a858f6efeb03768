//! The machine against scripts, and against random steps.

use proptest::prelude::*;

use super::*;
use crate::streak::EVENT;

const SECOND: Duration = Duration::from_secs(1);

/// A machine with its own clock.
struct Bench {
    state: State,
    now: Instant,
    held: Vec<Ticket>,
}

impl Bench {
    fn new(config: BreakerConfig) -> Self {
        let now = Instant::now();
        Self {
            state: State::new(config, now),
            now,
            held: Vec::new(),
        }
    }

    fn wait(&mut self, secs: u64) {
        self.now += Duration::from_secs(secs);
    }

    fn settle(&mut self, ticket: Ticket, verdict: Verdict, fault: Fault) -> String {
        let (opened, closed) = (self.state.opened, self.state.closed);
        let (state, now) = (&mut self.state, self.now);
        state.settle(ticket, verdict, fault, Duration::ZERO, &"down", now);
        if self.state.opened > opened {
            let open_for = self.state.time_to_probe(self.now).unwrap().as_secs();
            return format!("{open_for} s: {}", self.state.last_trip.as_ref().unwrap());
        }
        "closes".repeat(usize::from(self.state.closed > closed))
    }

    /// Admits a call and settles it by its letter: `f`ails, `s`ucceeds, means `n`othing. A figure
    /// after it is the time that the call takes, or after `l`oses the tool that was called.
    fn call(&mut self, what: &str) -> String {
        let ticket = self.state.admit(false, false, self.now).unwrap();
        if !what.starts_with('l') {
            self.wait(what[1..].parse().unwrap_or(0));
        }
        self.end(ticket, what)
    }

    fn end(&mut self, ticket: Ticket, what: &str) -> String {
        let (verdict, tool) = match what.split_at(1) {
            ("s", _) => (Verdict::Success, None),
            ("n", _) => (Verdict::Nothing, None),
            ("l", tool) => (Verdict::Failure, tool.parse().ok()),
            _ => (Verdict::Failure, None),
        };
        let is_retry = false;
        self.settle(ticket, verdict, Fault { tool, is_retry })
    }

    /// Runs a script, and returns what its last step did.
    ///
    /// | step | means |
    /// | --- | --- |
    /// | `f`, `s2`, `n`, `l1` | a [call](Self::call) |
    /// | `hold`, `write` | a call, or a write, that is admitted and goes on |
    /// | `extra` | a call that is admitted although the breaker is open, and goes on |
    /// | `end:f` | the call that goes on for the longest time ends |
    /// | `refused:5`, `unwritten:5` | a call, or a write, is refused for 5 s; `refused`: for ever |
    /// | `+30`, `+event` | time passes |
    /// | `=open`, `#2` | the state, the failures |
    /// | `force:open`, `force:closed`, `release`, `reset`, `lost` | what others do |
    fn run(&mut self, script: &str) -> String {
        let mut last = String::new();
        for step in script.split_whitespace() {
            let (word, after) = step.split_once(':').unwrap_or((step, ""));
            let is_write = matches!(word, "write" | "unwritten");
            match (word, word.split_at(1)) {
                ("hold" | "write", _) => {
                    let ticket = self.state.admit(is_write, false, self.now).expect(step);
                    self.held.push(ticket);
                }
                ("extra", _) => {
                    let ticket = self.state.admit(false, true, self.now).unwrap();
                    self.held.push(ticket);
                }
                ("end", _) => {
                    let ticket = self.held.remove(0);
                    last = self.end(ticket, after);
                }
                ("refused" | "unwritten", _) => {
                    let refused = self.state.admit(is_write, false, self.now).unwrap_err();
                    let wait = after.parse().ok().map(Duration::from_secs);
                    assert_eq!(refused.time_to_probe, wait, "{step}");
                }
                ("+event", _) => self.now += EVENT,
                ("force", _) => self.state.force(Some(after == "open")),
                ("release", _) => self.state.force(None),
                ("reset", _) => self.state.close(),
                ("lost", _) => self.state.is_lost = true,
                (_, ("+", secs)) => self.wait(secs.parse().unwrap()),
                (_, ("=", state)) => assert_eq!(self.state.state().as_str(), state),
                (_, ("#", failures)) => {
                    assert_eq!(self.state.failures().to_string(), failures);
                }
                _ => last = self.call(word),
            }
        }
        last
    }
}

/// Each row is a name, a script and the beginning of what its last step did.
fn check(config: BreakerConfig, rows: &str) {
    for row in rows.lines().filter(|row| !row.trim().is_empty()) {
        let [name, script, expected] = row.splitn(3, '|').collect::<Vec<_>>()[..] else {
            panic!("three columns: {row}")
        };
        println!("{name}");
        let (last, expected) = (Bench::new(config).run(script), expected.trim());
        let is_it = last.starts_with(expected) && last.is_empty() == expected.is_empty();
        assert!(is_it, "{name}: {last:?}");
    }
}

#[test]
fn consecutive_failures_open_it_and_probes_decide() {
    check(
        BreakerConfig::default(),
        "
        two are not enough | f f n #2 s #0 f f n s f f |
        three open it | f f f | 30 s: 3 failures in a row, the last: down
        refusals do not prolong it | f f f refused:30 +10 refused:20 +19 refused:1 +1 s | closes
        open time doubles | f f f +30 f +60 f +120 f +240 f +300 f | 300 s: a probe failed: down
        closed, it starts over | f f f +30 f +60 s f f f | 30 s: 3 failures in a row
        overlapping quick failures are one event | hold f end:n f f f f f f +event f #2 |
        further apart they are not | hold f end:n f +event f +event f | 30 s: 3 failures in a row
        a late success does not count | hold f f f end:s =open |
        a late failure does not count | hold f f f +30 hold end:f =half_open end:s | closes
        a dropped probe leaves its place | f f f +30 hold refused:30 end:n =half_open f | 60 s: a probe failed
        a probe without end | f f f +30 hold +29 refused:1 +1 hold end:f refused:30 end:s | closes
        a lost probe has no place to give | f f f +30 hold +30 hold end:n refused:30 |
        an extra call closes it | f f f extra extra end:f end:s | closes
        an extra call counts in its generation | f f f extra extra end:s end:s |
        forced open | hold force:open +100000 refused reset end:s =forced_open |
        forced closed | force:closed f f f f f f release =closed f #1 release #1 |
        a reset closes it | f f f reset =closed #0 f f |
        a lost connection refuses nothing | lost =disconnected s force:closed =forced_closed |",
    );
}

#[test]
fn a_write_is_a_probe_only_where_no_safe_call_comes() {
    check(
        BreakerConfig::default(),
        "
        it waits | f f f +30 unwritten:30 +10 unwritten:20 | 30 s: 3 failures in a row
        a dropped probe is left to safe calls | f f f +40 hold end:n unwritten:20 s write | closes
        none came | f f f +60 write unwritten:30 end:s | closes
        no read ever | write end:f write end:f write end:f +29 unwritten:1 +1 write end:s | closes",
    );
}

#[test]
fn a_share_of_calls_opens_it_once_there_are_enough() {
    let shares = |failures, min_calls| {
        let mut config = BreakerConfig::default();
        (config.failures, config.failure_rate) = (failures, Some(0.5));
        config.min_calls = min_calls;
        config
    };
    check(
        shares(0, 10),
        "
        nine are too few | f s f s f s f s f |
        ten are enough | f s f s f s f s f f | 30 s: 6 of 10 calls within 60s failed, the last
        a success opens nothing | f f f f f f f f f s |",
    );
    check(
        shares(0, 3),
        "
        far apart | f +31 f +31 f +31 f +31 f +31 f |",
    );
    check(
        shares(0, 4),
        "
        exactly half | s s f f | 30 s: 2 of 4 calls within 60s failed, the last
        less than half | s s s f |",
    );
    check(shares(3, 10), "row | f f f | 30 s: 3 failures in a row");
    check(shares(1, 10), "one | f | 30 s: a failure: down");
    let mut bench = Bench::new(shares(0, 10));
    bench.run("f s f s f s f s f f +30 s");
    assert_eq!(bench.state.counts(bench.now), Some(WindowStatus::default()));
    let mut bench = Bench::new(shares(3, 10));
    for _ in 0..5 {
        bench.run("f");
        assert_eq!(bench.run(&"s ".repeat(199)), "");
    }
    assert_eq!(bench.state.counts(bench.now).unwrap().failed, 5);
    let mut slow = BreakerConfig::default();
    (slow.slow_after, slow.slow_rate) = (Some(Duration::from_millis(1500)), Some(0.75));
    slow.min_calls = 4;
    check(
        slow,
        "
        slow | s1 s2 s3 s4 | 30 s: 3 of 4 calls within 60s took 1.5s or longer
        a slow probe | s1 s2 s3 s4 +30 s2 | 60 s: a probe took 1.5s or longer
        a fast probe | s1 s2 s3 s4 +30 s2 +60 s1 | closes",
    );
}

#[test]
fn one_tool_that_loses_connections_never_opens_the_breaker_of_its_server() {
    for failures in [1, 3, 5] {
        let mut config = BreakerConfig::server();
        config.failures = failures;
        let mut bench = Bench::new(config);
        assert_eq!(bench.run(&"l1 ".repeat(100)), "");
        bench.run("#1 =closed");
    }
    check(
        BreakerConfig::server(),
        "
        each tool counts once | l1 l2 l1 l3 l1 l4 l1 l2 s l1 l2 l1 l3 l1 l4 |
        no connection counts each time | l1 l1 l2 f f f | 10 s: 5 failures in a row
        one tool loses probes | f f f f f +10 l1 l1 l1 =half_open hold refused:10 end:n s | closes
        one of another tool does | f f f f f +10 l1 l2 | 20 s: a probe failed: down
        each half-open time begins again | f f f f f +10 l1 l2 +20 l1 =half_open |
        a failed connection decides at once | f f f f f +10 l1 f | 20 s: a probe failed: down",
    );
    let mut shares = BreakerConfig::server();
    (shares.failures, shares.failure_rate, shares.min_calls) = (0, Some(0.5), 4);
    let mut bench = Bench::new(shares);
    for _ in 0..20 {
        assert_eq!(bench.run("l1 s +10"), "", "in a share it counts as nothing");
    }
    bench.run("s s s s s");
    while bench.state.state() == BreakerState::Closed {
        bench.run("f");
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// A call, or a write that must not be sent twice.
    Admit(bool),
    Reset,
    Settle(usize, Verdict, Fault),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let verdicts = [Verdict::Failure, Verdict::Nothing, Verdict::Success];
    let verdicts = prop::sample::select(verdicts.to_vec());
    let faults = (prop::option::of(0_u128..3), any::<bool>())
        .prop_map(|(tool, is_retry)| Fault { tool, is_retry });
    let step = prop_oneof![
        4 => Just(Step::Admit(false)),
        3 => Just(Step::Admit(true)),
        6 => (any::<usize>(), verdicts, faults)
            .prop_map(|(which, verdict, fault)| Step::Settle(which, verdict, fault)),
        3 => prop_oneof![0_u64..8, 0_u64..40].prop_map(Step::Wait),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 0..300)
}

proptest! {
    #[test]
    fn probes_never_exceed_their_places_and_time_always_heals(
        steps in steps(),
        failures in 1_u32..4,
        probes in 1_u32..4,
        open_time in 1_u32..=30,
        shares in any::<bool>(),
    ) {
        let mut config = BreakerConfig::default();
        (config.failures, config.probes) = (failures, probes);
        config.open_time = open_time * SECOND;
        if shares {
            config.failure_rate = Some(0.3);
            (config.slow_after, config.slow_rate) = (Some(5 * SECOND), Some(0.6));
            config.window = 20 * SECOND;
            config.min_calls = 4;
        }
        let mut bench = Bench::new(config);
        // calls in flight: the ticket, when it was given, and whether it is a probe's
        let mut flying: Vec<(Ticket, Instant, bool)> = Vec::new();
        for step in steps {
            match step {
                Step::Admit(is_write) => {
                    let before = bench.state.clone();
                    let wait = before.time_to_pass(is_write, bench.now);
                    let safe_wait = before.time_to_pass(false, bench.now);
                    prop_assert!(safe_wait <= wait, "no call waits less than a safe one");
                    let admitted = bench.state.admit(is_write, false, bench.now);
                    prop_assert_eq!(wait == Some(Duration::ZERO), admitted.is_ok());
                    if let Ok(ticket) = admitted {
                        let probe = before.state() != BreakerState::Closed;
                        flying.push((ticket, bench.now, probe));
                    }
                }
                Step::Reset => bench.state.close(),
                Step::Settle(which, verdict, fault) if !flying.is_empty() => {
                    let (ticket, ..) = flying.swap_remove(which % flying.len());
                    bench.settle(ticket, verdict, fault);
                }
                Step::Settle(..) => {}
                Step::Wait(secs) => bench.wait(secs),
            }
            // a probe within its time still holds its permit
            let holds = |given: Instant| bench.now.duration_since(given) < open_time * SECOND;
            let probing = flying.iter().filter(|(_, given, probe)| *probe && holds(*given));
            let probing = probing.count();
            prop_assert!(probing <= probes as usize, "{probing} probes in flight");
            // no other call is made: time alone leads to the next call, also a write
            let (longest, grace) = (config.max_open_time, config.open_time);
            for (is_write, longest) in [(false, longest), (true, longest + grace)] {
                let mut later = bench.state.clone();
                prop_assert!(later.admit(is_write, false, bench.now + longest).is_ok());
            }
        }
    }
}
