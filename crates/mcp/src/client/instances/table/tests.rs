use callward_core::{Caller, Instances};

use super::*;

const IDLE: Duration = Duration::from_secs(60);

/// The number of the first lead.
const LEAD: u64 = 0;

/// A table whose handles are the numbers of the instances, and how many were started.
struct World {
    table: Table<u64>,
    started: usize,
    now: Instant,
    lead_is_down: bool,
}

impl World {
    fn new(change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = Limits {
            idle: IDLE,
            ..Limits::default()
        };
        change(&mut limits);
        let now = Instant::now();
        Self {
            table: Table::new(limits, LEAD, now),
            started: 0,
            now,
            lead_is_down: false,
        }
    }

    fn enter(&mut self, caller: &Caller, ran: Ran) -> Result<u64, Refused> {
        let owner = Instances::Session.owner(caller).unwrap();
        let started = &mut self.started;
        let start = |number, _| {
            *started += 1;
            number
        };
        let entered = self
            .table
            .enter(owner, ran, self.now, self.lead_is_down, start);
        entered.map(|(number, handle)| {
            assert_eq!(handle, number);
            number
        })
    }

    /// Ends the lead, which is ending; returns the number of the next one, if it was started.
    fn lead_ends(&mut self) -> Option<u64> {
        assert_eq!(self.table.opened_lead(), None);
        self.table.lead_ended(self.now, |number, is_lead| {
            assert!(is_lead);
            number
        });
        self.table.opened_lead()
    }

    /// Makes one call.
    fn call(&mut self, caller: &Caller, ran: Ran) -> Result<u64, Refused> {
        let number = self.enter(caller, ran)?;
        self.table.leave(number, self.now);
        Ok(number)
    }

    fn end(&mut self, caller: &Caller) {
        let session = caller.session.as_ref().unwrap();
        self.table
            .session_ended(&caller.principal, session, self.now);
    }

    fn sweep(&mut self) -> Swept {
        self.table.sweep(self.now, self.lead_is_down)
    }

    fn places(&self) -> Vec<&Place<u64>> {
        self.table.entries().map(|entry| &entry.place).collect()
    }
}

fn session(principal: &str, session: &str) -> Caller {
    Caller::new(Principal::new(principal)).with_session(SessionId::new(session))
}

const READ: Ran = Ran::DeclaredReads;
const WRITE: Ran = Ran::Writes;

#[test]
fn each_owner_has_an_instance_of_its_own_and_keeps_it() {
    let mut world = World::new(|_| {});
    let [one, other] = [session("ada", "1"), session("ada", "2")];
    assert_eq!(
        world.call(&one, WRITE),
        Ok(LEAD),
        "the lead serves the first"
    );
    let second = world.call(&other, WRITE).unwrap();
    assert_ne!(second, LEAD);
    assert_eq!(world.call(&one, READ), Ok(LEAD));
    assert_eq!(world.call(&other, READ), Ok(second));
    // one more of each first use is kept warm
    assert_eq!(world.started, 2);
}

#[test]
fn a_session_id_does_not_lead_to_another_principals_instance() {
    let mut world = World::new(|_| {});
    let ada = world.call(&session("ada", "1"), READ).unwrap();
    let eve = world.call(&session("eve", "1"), READ).unwrap();
    assert_ne!(ada, eve);
    world.end(&session("eve", "1"));
    assert_eq!(world.call(&session("ada", "1"), READ), Ok(ada));
}

#[test]
fn a_hundred_reading_sessions_in_a_row_need_two_processes() {
    let mut world = World::new(|_| {});
    for number in 0..100 {
        let caller = session("ada", &number.to_string());
        assert_eq!(world.call(&caller, READ), Ok(LEAD));
        world.end(&caller);
    }
    assert_eq!(world.started, 1, "the lead, and the spare one");
}

#[test]
fn only_a_clean_instance_goes_to_the_next_session_of_its_principal() {
    let mut world = World::new(|limits| limits.spare = 0);
    world.lead_is_down = true;
    let first = world.call(&session("ada", "1"), READ).unwrap();
    world.end(&session("ada", "1"));
    let eve = world.call(&session("eve", "1"), READ).unwrap();
    assert_ne!(eve, first, "another principal");
    assert_eq!(world.call(&session("ada", "2"), WRITE), Ok(first));
    world.end(&session("ada", "2"));
    let third = world.call(&session("ada", "3"), READ).unwrap();
    assert_ne!(third, first, "it has run a write");
    world
        .call(&session("ada", "3"), Ran::InferredReads)
        .unwrap();
    world.end(&session("ada", "3"));
    let fourth = world.call(&session("ada", "4"), READ).unwrap();
    assert_ne!(fourth, third, "what it has run is not declared");
    assert_eq!(
        world.places(),
        [
            &Place::Open(LEAD),
            &Place::Ending,
            &Place::Open(eve),
            &Place::Ending,
            &Place::Open(fourth)
        ]
    );
}

#[test]
fn a_lead_that_ran_a_write_ends_with_its_session() {
    let mut world = World::new(|limits| limits.spare = 0);
    assert_eq!(world.call(&session("ada", "1"), WRITE), Ok(LEAD));
    world.end(&session("ada", "1"));
    assert_eq!(world.places(), [&Place::Ending]);
    let meanwhile = world.call(&session("ada", "2"), WRITE).unwrap();
    assert_ne!(meanwhile, LEAD, "the lead has not ended");
    assert_eq!(world.lead_ends(), None, "no spare one is wanted");
    let lead = world.call(&session("ada", "3"), WRITE).unwrap();
    assert_eq!(world.table.opened_lead(), Some(lead), "it is started again");
}

#[test]
fn a_lead_is_started_again_at_once_as_the_spare_one() {
    let mut world = World::new(|_| {});
    assert_eq!(world.call(&session("ada", "1"), WRITE), Ok(LEAD));
    world.end(&session("ada", "1"));
    let lead = world.lead_ends().unwrap();
    assert_eq!(world.started, 1, "with the first session");
    assert_eq!(world.call(&session("eve", "1"), WRITE), Ok(lead));
    assert_eq!(world.started, 1, "one is left");
}

#[test]
fn a_lead_whose_session_never_ends_ends_when_it_is_idle() {
    for ran in [READ, Ran::InferredReads, WRITE] {
        let mut world = World::new(|limits| limits.spare = 0);
        assert_eq!(world.call(&session("ada", "1"), ran), Ok(LEAD));
        world.now += IDLE;
        assert_eq!(world.sweep().lost, ran != READ);
        assert_eq!(world.places(), [&Place::Ending]);
    }
}

#[test]
fn a_lead_that_serves_nobody_stays_only_as_a_spare_one() {
    for (spare, place) in [(1, Place::Open(LEAD)), (0, Place::Ending)] {
        let mut world = World::new(|limits| limits.spare = spare);
        world.now += IDLE;
        world.sweep();
        assert_eq!(world.places(), [&place]);
    }
}

#[test]
fn a_spare_one_beside_the_lead_ends_when_it_is_idle() {
    let mut world = World::new(|_| {});
    let long = session("eve", "1");
    assert_eq!(world.call(&session("ada", "1"), WRITE), Ok(LEAD));
    assert_eq!(world.enter(&long, WRITE), Ok(1));
    world.end(&session("ada", "1"));
    // the lead, and the one that was started for the second session
    let lead = world.lead_ends().unwrap();
    world.now += IDLE;
    world.sweep();
    let left = [&Place::Open(1), &Place::Ending, &Place::Open(lead)];
    assert_eq!(world.places(), left);
}

#[test]
fn a_closed_lead_is_started_for_a_listing_and_not_while_it_ends() {
    let mut world = World::new(|limits| limits.spare = 0);
    world.call(&session("ada", "1"), WRITE).unwrap();
    world.end(&session("ada", "1"));
    let start = |number, _| number;
    let listed = world.table.open_lead(false, world.now, start);
    assert_eq!(listed, Err(Refused::UntilOneEnds));
    world.lead_ends();
    let lead = world.table.open_lead(false, world.now, start).unwrap();
    assert_eq!(world.call(&session("ada", "2"), WRITE), Ok(lead));
}

#[test]
fn a_session_that_leaves_calls_behind_frees_its_instance_after_them() {
    for (ran, place) in [
        (READ, Place::Open(1)),
        (Ran::InferredReads, Place::Ending),
        (WRITE, Place::Ending),
    ] {
        let mut world = World::new(|limits| limits.spare = 0);
        world.lead_is_down = true;
        let caller = session("ada", "1");
        let number = world.enter(&caller, ran).unwrap();
        world.end(&caller);
        assert_eq!(world.places(), [&Place::Open(LEAD), &Place::Open(number)]);
        // not even the same session gets it while the old call runs
        assert_ne!(world.enter(&caller, READ), Ok(number));
        world.table.leave(number, world.now);
        assert_eq!(world.places()[1], &place);
    }
}

#[test]
fn beyond_the_limit_a_call_fails_and_nobody_loses_state() {
    let mut world = World::new(|limits| limits.max = 2);
    let first = world.call(&session("ada", "1"), WRITE).unwrap();
    let second = world.call(&session("ada", "2"), WRITE).unwrap();
    assert_eq!(world.call(&session("ada", "3"), READ), Err(Refused::Full));
    assert_eq!(world.call(&session("ada", "1"), READ), Ok(first));
    assert_eq!(world.call(&session("ada", "2"), READ), Ok(second));
    world.end(&session("ada", "2"));
    assert_eq!(
        world.call(&session("ada", "3"), READ),
        Err(Refused::UntilOneEnds),
        "it counts until it has ended"
    );
    world.table.ended(second);
    assert!(world.call(&session("ada", "3"), READ).is_ok());
}

#[test]
fn at_the_limit_an_idle_instance_without_state_makes_place() {
    let mut world = World::new(|limits| limits.max = 2);
    world.call(&session("ada", "1"), WRITE).unwrap();
    let clean = world
        .call(&session("ada", "2"), Ran::InferredReads)
        .unwrap();
    assert_eq!(
        world.call(&session("eve", "1"), READ),
        Err(Refused::UntilOneEnds)
    );
    world.table.ended(clean);
    assert!(world.call(&session("eve", "1"), READ).is_ok());
    // the one that was ended held nothing: its owner gets another one when there is place
    assert_eq!(
        world.call(&session("ada", "2"), READ),
        Err(Refused::UntilOneEnds)
    );
}

#[test]
fn a_spare_one_is_given_to_the_next_owner_and_replaced() {
    let mut world = World::new(|limits| limits.spare = 2);
    world.call(&session("ada", "1"), WRITE).unwrap();
    assert_eq!(world.started, 2);
    assert_eq!(world.call(&session("eve", "1"), WRITE), Ok(1));
    assert_eq!(world.started, 3);
}

#[test]
fn principals_without_sessions_need_no_spare_one() {
    let mut world = World::new(|_| {});
    let ada = Caller::new(Principal::new("ada"));
    assert_eq!(world.call(&ada, WRITE), Ok(LEAD));
    assert_eq!(world.started, 0);
}

#[test]
fn an_instance_ends_when_it_is_idle_and_not_while_a_call_runs() {
    let mut world = World::new(|limits| limits.spare = 0);
    world.lead_is_down = true;
    let number = world.enter(&session("ada", "1"), WRITE).unwrap();
    world.now += IDLE * 2;
    assert_eq!(world.sweep(), Swept::default());
    world.table.leave(number, world.now);
    let swept = world.sweep();
    assert_eq!(swept.next, Some(world.now + IDLE));
    world.now += IDLE;
    assert!(world.sweep().lost, "its owner may have read");
    assert_eq!(world.places(), [&Place::Open(LEAD), &Place::Ending]);
    world.table.ended(number);
    assert_ne!(world.call(&session("ada", "1"), WRITE), Ok(number));
}

#[test]
fn the_spare_one_ends_when_nobody_is_left() {
    let mut world = World::new(|_| {});
    world.call(&session("ada", "1"), READ).unwrap();
    world.now += IDLE;
    // the owner's is idle now, and the spare one waits for the next owner until then
    world.sweep();
    assert_eq!(world.places(), [&Place::Ending, &Place::Open(1)]);
    world.sweep();
    assert_eq!(world.places(), [&Place::Ending, &Place::Ending]);
}

#[test]
fn a_lead_that_serves_all_is_given_to_no_owner() {
    let mut world = World::new(|limits| limits.max = 1);
    let ada = session("ada", "1");
    assert_eq!(world.call(&ada, WRITE), Ok(LEAD));
    let shared = world.table.open_lead(true, world.now, |number, _| number);
    assert_eq!(shared, Ok(LEAD));
    // it does not count as one, and its owner gets another one
    assert_eq!(world.call(&ada, READ), Ok(1));
    world.end(&ada);
    assert_eq!(world.places()[0], &Place::Open(LEAD), "others use it");
    assert_eq!(world.call(&session("ada", "2"), READ), Ok(1));
    world.now += IDLE;
    world.sweep();
    assert_eq!(world.places(), [&Place::Open(LEAD), &Place::Ending]);
}

#[test]
fn nothing_is_started_after_the_end() {
    let mut world = World::new(|_| {});
    world.call(&session("ada", "1"), READ).unwrap();
    assert_eq!(world.table.close(), [1]);
    assert_eq!(world.call(&session("ada", "2"), READ), Err(Refused::Closed));
    assert!(!world.table.is_empty());
    world.table.ended(1);
    assert!(world.table.is_empty());
}
