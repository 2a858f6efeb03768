//! The events of one stream that may still be sent, within bounds.

use std::collections::VecDeque;

use bytes::Bytes;

/// The most events of a stream that are kept once sent, and that may wait for a slow client.
pub(super) const MAX_EVENTS: u64 = 64;

/// With more bytes than that no sent event is kept, and no further one is taken.
pub(super) const MAX_BYTES: usize = 256 * 1024;

/// The events of one stream that may still be sent. The first has the number 1.
#[derive(Debug, Default)]
pub(super) struct Events {
    kept: VecDeque<Bytes>,
    /// The sum of their lengths.
    bytes: usize,
    /// How many were dropped before them.
    dropped: u64,
    /// How many were sent, with those that were dropped since.
    sent: u64,
    /// Which connection sends them.
    pub(super) connection: u64,
    /// Whether it is there.
    pub(super) is_connected: bool,
    pub(super) has_ended: bool,
}

impl Events {
    /// Returns the number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    /// Returns `true` if an event follows the one with this number, or may do.
    pub(super) fn go_on_after(&self, passed: u64) -> bool {
        passed < self.last() || (passed == self.last() && !self.has_ended)
    }

    /// Returns `true` unless as much waits to be sent as may.
    pub(super) fn have_place(&self) -> bool {
        self.last() - self.sent < MAX_EVENTS && self.bytes <= MAX_BYTES
    }

    pub(super) fn push(&mut self, event: Bytes) {
        self.bytes += event.len();
        self.kept.push_back(event);
    }

    /// Returns the event after this number, or the first that is kept, and its number.
    pub(super) fn after(&self, passed: u64) -> Option<(u64, Bytes)> {
        let passed = passed.max(self.dropped);
        let place = usize::try_from(passed - self.dropped).ok()?;
        Some((passed + 1, self.kept.get(place)?.clone()))
    }

    /// Takes note that the event with this number was sent, and drops what need not be kept.
    pub(super) fn sent(&mut self, number: u64) {
        self.sent = self.sent.max(number);
        while self.sent > self.dropped
            && (self.sent - self.dropped > MAX_EVENTS || self.bytes > MAX_BYTES)
            && let Some(oldest) = self.kept.pop_front()
        {
            self.bytes -= oldest.len();
            self.dropped += 1;
        }
    }
}
