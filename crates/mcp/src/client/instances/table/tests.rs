//! Scenarios, step by step, with what each step shows.

use callward_core::{Caller, Instances};

use super::super::entry::key;
use super::*;

const IDLE: Duration = Duration::from_secs(60);

/// A table whose handles are the numbers of the instances. The first lead is number 0.
struct World {
    table: Table<u64>,
    /// How many instances calls have started.
    started: usize,
    now: Instant,
    lead_is_down: bool,
}

fn shown(entered: Result<u64, Refused>) -> String {
    match entered {
        Ok(number) => number.to_string(),
        Err(refused) => format!("{refused:?}"),
    }
}

/// A caller: a principal, and its session if there is one behind a slash.
fn caller(text: &str) -> Caller {
    match text.split_once('/') {
        Some((principal, session)) => {
            Caller::new(Principal::new(principal)).with_session(SessionId::new(session))
        }
        None => Caller::new(Principal::new(text)),
    }
}

impl World {
    /// Makes a table with limits such as `spare=0 max=2`.
    fn new(settings: &str) -> Self {
        let mut limits = UpstreamOptions {
            idle: IDLE,
            ..UpstreamOptions::default()
        };
        for setting in settings.split_whitespace() {
            let (name, number) = setting.split_once('=').unwrap();
            let number = number.parse().unwrap();
            match name {
                "spare" => limits.spare = number,
                _ => limits.max_instances = number,
            }
        }
        let now = Instant::now();
        Self {
            table: Table::new(&limits, 0, now),
            started: 0,
            now,
            lead_is_down: false,
        }
    }

    /// Counts a call as in flight, of reads that are declared (`R`) or inferred (`I`), or of a
    /// write (`W`).
    fn enter(&mut self, owner: &str, ran: &str) -> Result<u64, Refused> {
        let ran = match ran {
            "R" => Ran::DeclaredReads,
            "I" => Ran::InferredReads,
            _ => Ran::Writes,
        };
        let caller = caller(owner);
        let owner = Instances::Session.owner(&caller).unwrap();
        let start = |number, _, _| {
            self.started += 1;
            number
        };
        let lead = Lead {
            is_down: self.lead_is_down,
            ..Lead::default()
        };
        let owner = key(owner, ClientCapabilities::default());
        let (number, handle) = self.table.enter(owner, ran, self.now, lead, start)?;
        assert_eq!(handle, number);
        Ok(number)
    }

    /// Takes one step; returns what it shows.
    fn step(&mut self, words: &[&str]) -> String {
        match words {
            ["down"] => self.lead_is_down = true,
            ["idle"] => self.now += IDLE,
            ["end", owner] => {
                let caller = caller(owner);
                let session = caller.session.unwrap();
                self.table
                    .session_ended(&caller.principal, &session, self.now);
            }
            ["ended", number] => self.table.ended(number.parse().unwrap()),
            ["leave", number] => self.table.leave(number.parse().unwrap(), self.now),
            ["enter", owner, ran] => return shown(self.enter(owner, ran)),
            ["lead-ends"] => {
                assert_eq!(self.table.opened_lead(), None);
                self.table.lead_ended(self.now, |number, _, _| number);
                return self.step(&["lead"]);
            }
            ["lead"] => {
                let lead = self.table.opened_lead();
                return lead.map_or_else(|| "none".into(), |number| number.to_string());
            }
            ["list" | "share"] => {
                let share = words == ["share"];
                return shown(self.table.open_lead(share, self.now, |number, _, _| number));
            }
            ["keep" | "keep-no-more"] => {
                let keeps = words == ["keep"];
                let start = |number, _, _| number;
                self.table.keep_lead(keeps, self.now, start);
            }
            ["close"] => return format!("{:?}", self.table.close()),
            ["started"] => return self.started.to_string(),
            ["is-empty"] => return self.table.is_empty().to_string(),
            ["sweep"] => {
                let (is_lost, next) = self.table.sweep(self.now, self.lead_is_down);
                let next = next.map(|next| (next - self.now).as_secs());
                return format!("{} {next:?}", if is_lost { "lost" } else { "kept" });
            }
            ["places"] => {
                let places = self.table.entries().map(|entry| {
                    let number = entry.handle.map(|number| number.to_string());
                    number.unwrap_or_else(|| "ending".to_owned())
                });
                return Vec::from_iter(places).join(" ");
            }
            // a whole call
            [owner, ran] => {
                let entered = self.enter(owner, ran);
                if let Ok(number) = entered {
                    self.table.leave(number, self.now);
                }
                return shown(entered);
            }
            other => panic!("{other:?}"),
        }
        String::new()
    }
}

/// Scenarios: the name of each, and below it its limits and its steps with what they show.
const SCENARIOS: &str = "\
each owner has an instance of its own, and one more is kept warm
    | ada/1 W: 0; ada/2 W: 1; ada/1 R: 0; ada/2 R: 1; started: 2
a session id does not lead to another principal's instance
    | ada/1 R: 0; eve/1 R: 1; end eve/1; ada/1 R: 0
only a clean instance goes to the next session of its principal
    spare=0 | down; ada/1 R: 1; end ada/1; eve/1 R: 2; ada/2 W: 1; end ada/2; ada/3 R: 3;
    ada/3 I: 3; end ada/3; ada/4 R: 4; places: 0 ending 2 ending 4
a lead that ran a write ends with its session, and is started again when it is needed
    spare=0 | ada/1 W: 0; end ada/1; places: ending; ada/2 W: 1; lead-ends: none; ada/3 W: 2;
    lead: 2
reading sessions in a row need no instance but the lead, and the spare one
    | ada/1 R: 0; end ada/1; ada/2 R: 0; end ada/2; ada/3 R: 0; started: 1
a lead is started again at once as the spare one
    | ada/1 W: 0; end ada/1; lead-ends: 2; started: 1; eve/1 W: 2; started: 1
a lead with declared reads whose session never ends ends when it is idle
    spare=0 | ada/1 R: 0; idle; sweep: kept None; places: ending
a lead with inferred reads whose session never ends is a loss
    spare=0 | ada/1 I: 0; idle; sweep: lost None; places: ending
a lead that serves no owner stays as a spare one
    spare=1 | idle; sweep: kept None; places: 0
a lead that serves no owner ends if no spare one is wanted
    spare=0 | idle; sweep: kept None; places: ending
a spare one beside the lead ends when it is idle
    | ada/1 W: 0; enter eve/1 W: 1; end ada/1; lead-ends: 3; idle; sweep: kept None;
    places: 1 ending 3
a closed lead is started for a listing and not while it ends
    spare=0 | ada/1 W: 0; end ada/1; list: UntilOneEnds; lead-ends: none; list: 1; ada/2 W: 1
a session that leaves declared reads behind frees its instance after them
    spare=0 | down; enter ada/1 R: 1; end ada/1; places: 0 1; enter ada/1 R: 2; leave 1;
    places: 0 1 2
a session that leaves inferred reads behind ends its instance after them
    spare=0 | down; enter ada/1 I: 1; end ada/1; places: 0 1; enter ada/1 R: 2; leave 1;
    places: 0 ending 2
beyond the limit a call fails and no owner loses state; an instance counts until it ends
    max=2 | ada/1 W: 0; ada/2 W: 1; ada/3 R: Full; ada/1 R: 0; ada/2 R: 1; end ada/2;
    ada/3 R: UntilOneEnds; ended 1; ada/3 R: 2
at the limit an idle instance without state makes place
    max=2 | ada/1 W: 0; ada/2 I: 1; eve/1 R: UntilOneEnds; ended 1; eve/1 R: 2;
    ada/2 R: UntilOneEnds
a spare one is given to the next owner and replaced
    spare=2 | ada/1 W: 0; started: 2; eve/1 W: 1; started: 3
principals without sessions need no spare one
    | ada W: 0; started: 0
an instance ends when it is idle and not while a call runs; its owner may have read
    spare=0 | down; enter ada/1 W: 1; idle; idle; sweep: kept None; leave 1;
    sweep: kept Some(60); idle; sweep: lost None; places: 0 ending; ended 1; ada/1 W: 2
the spare one ends when no owner is left
    | ada/1 R: 0; idle; sweep: kept None; places: ending 1; sweep: kept None;
    places: ending ending
a lead that serves all is given to no owner, and does not count
    max=1 | ada/1 W: 0; share: 0; ada/1 R: 1; end ada/1; places: 0 1; ada/2 R: 1; idle;
    sweep: kept None; places: 0 ending
a lead that is kept stays when it is idle, and is started again when it has ended
    spare=0 | keep; ada/1 I: 0; idle; sweep: kept None; end ada/1; lead-ends: 1; keep-no-more;
    idle; sweep: kept None; lead-ends: none; keep; lead: 2
nothing is started after the end
    | ada/1 R: 0; close: [1]; ada/2 R: Closed; is-empty: false; ended 1; is-empty: true
";

#[test]
fn each_step_of_each_scenario_shows_what_is_expected() {
    let mut lines = SCENARIOS.lines().peekable();
    while let Some(name) = lines.next() {
        let steps: Vec<_> =
            std::iter::from_fn(|| lines.next_if(|line| line.starts_with("    "))).collect();
        let steps = steps.join(" ");
        let (limits, steps) = steps.split_once('|').unwrap();
        let mut world = World::new(limits);
        for step in steps.split(';') {
            let (step, expected) = step.split_once(':').unwrap_or((step, ""));
            let words: Vec<_> = step.split_whitespace().collect();
            assert_eq!(world.step(&words), expected.trim(), "{name}: {step}");
        }
    }
}
