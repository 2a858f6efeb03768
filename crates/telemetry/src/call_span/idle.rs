//! What observed calls that are over leave to calls to come: their records, and the room for what is known
//! of them. A call that is only counted allocates neither.

use std::cell::RefCell;
use std::sync::Arc;

use callward_core::CallRecord;

use super::observed::Seen;

/// Takes a record for somebody who only counts.
pub(super) fn take() -> Arc<CallRecord> {
    let idle = IDLE.try_with(|idle| idle.borrow_mut().pop());
    let idle = idle.ok().flatten();
    idle.unwrap_or_else(|| Arc::new(CallRecord::for_counting()))
}

/// Gives a record back that came from [`take`]. One that somebody else still holds is left to them.
pub(super) fn give_back(mut record: Arc<CallRecord>) {
    let Some(own) = Arc::get_mut(&mut record) else {
        return;
    };
    own.clear_for_counting();
    // a thread that ends has no place for it any more
    let _ = IDLE.try_with(|idle| {
        let mut idle = idle.borrow_mut();
        if idle.len() < MOST_IDLE {
            idle.push(record);
        }
    });
}

/// Takes room for what is known of a call.
pub(super) fn take_room() -> Box<Option<Seen>> {
    let room = ROOMS.try_with(|rooms| rooms.borrow_mut().pop());
    room.ok().flatten().unwrap_or_default()
}

/// Gives room back that is empty.
pub(super) fn give_room_back(room: Box<Option<Seen>>) {
    let _ = ROOMS.try_with(|rooms| {
        let mut rooms = rooms.borrow_mut();
        if rooms.len() < MOST_IDLE {
            rooms.push(room);
        }
    });
}

/// A thread keeps so many: a call that is answered at once gives its own back before the next.
const MOST_IDLE: usize = 16;

thread_local! {
    static IDLE: RefCell<Vec<Arc<CallRecord>>> = const { RefCell::new(Vec::new()) };
    #[expect(clippy::vec_box, reason = "it is the room that is kept")]
    static ROOMS: RefCell<Vec<Box<Option<Seen>>>> = const { RefCell::new(Vec::new()) };
}

#[cfg(test)]
mod tests {
    use callward_core::CacheStatus;

    use super::*;

    #[test]
    fn a_record_comes_back_as_new() {
        let record = take();
        record.set_cache(CacheStatus::Hit);
        record.start_attempt();
        let address = Arc::as_ptr(&record);
        give_back(record);
        let record = take();
        assert_eq!(Arc::as_ptr(&record), address);
        assert_eq!(record.cache(), CacheStatus::Bypass);
        assert_eq!(record.started_attempts(), 0);
        assert!(!record.wants_decisions());
    }

    #[test]
    fn a_record_that_is_read_elsewhere_is_not_given_out_again() {
        let record = take();
        let reader = record.clone();
        record.set_cache(CacheStatus::Miss);
        give_back(record);
        assert!(!Arc::ptr_eq(&take(), &reader));
        assert_eq!(reader.cache(), CacheStatus::Miss);
    }
}
