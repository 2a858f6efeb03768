//! Streams of a session that its client can resume: each event has an id, and a stream whose
//! connection breaks waits for a request with `Last-Event-ID`.
//!
//! A resumed stream sends what follows that event, also what was lost on the way. The call that it
//! carries goes on meanwhile: a broken connection does not cancel it.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::events::Events;
use super::stream::Sent;
use crate::server::answer::Answer;

/// How long a stream without a connection waits to be resumed, and one that has ended is kept.
pub(super) const KEPT: Duration = Duration::from_secs(30);

/// The most streams of a session without a connection. For a further one the oldest is given up.
const MAX_UNREAD: usize = 16;

/// What begins the ids of a session's own stream, and of those that answer a call.
pub(super) const OWN: &str = "s";
pub(super) const OF_CALL: &str = "c";

/// The streams of one session, by number.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last: u64,
    streams: HashMap<u64, watch::Sender<Events>>,
    /// Those without a connection, the oldest first.
    unread: VecDeque<u64>,
}

impl Streams {
    /// Opens a stream of these messages, whose ids begin so, for the connection that reads what is
    /// returned. With `primes` the first event is empty: the client has its id before there is a
    /// message.
    pub(super) fn open<S>(
        self: &Arc<Self>,
        prefix: &'static str,
        messages: S,
        primes: bool,
    ) -> Connection
    where
        S: Stream<Item = Answer> + Send + 'static,
    {
        let (events, state) = watch::channel(Events::default());
        if primes {
            events.send_modify(|events| events.push(Default::default()));
        }
        let mut table = self.0.lock();
        table.last += 1;
        let number = table.last;
        let connection = self.connect(&events, (prefix, number), 0);
        table.streams.insert(number, events);
        drop(table);
        tokio::spawn(Arc::clone(self).carry(number, state, messages));
        connection
    }

    /// Continues a stream after the event with this id; `None` if it is not kept any more, or has
    /// ended with this event.
    pub(super) fn resume(self: &Arc<Self>, last_event: &str) -> Option<Connection> {
        let prefixes = [OWN, OF_CALL];
        let prefix = prefixes
            .into_iter()
            .find(|prefix| last_event.starts_with(prefix))?;
        let (number, passed) = last_event[prefix.len()..].split_once('-')?;
        let (number, passed) = (number.parse().ok()?, passed.parse().ok()?);
        let mut table = self.0.lock();
        let events = table.streams.get(&number)?;
        if !events.borrow().go_on_after(passed) {
            return None;
        }
        let connection = self.connect(events, (prefix, number), passed);
        table.unread.retain(|unread| *unread != number);
        Some(connection)
    }

    /// Connects a stream. A connection that it has by now is a dead one, and ends.
    fn connect(
        self: &Arc<Self>,
        events: &watch::Sender<Events>,
        (prefix, number): (&'static str, u64),
        passed: u64,
    ) -> Connection {
        let mut connection = 0;
        events.send_modify(|events| {
            events.connection += 1;
            events.is_connected = true;
            connection = events.connection;
        });
        Connection {
            streams: Arc::clone(self),
            events: events.subscribe(),
            prefix,
            number,
            connection,
            passed,
        }
    }

    /// Takes the messages of a stream until they end, it is given up, or nothing resumes it.
    async fn carry<S>(self: Arc<Self>, number: u64, state: watch::Receiver<Events>, messages: S)
    where
        S: Stream<Item = Answer> + Send + 'static,
    {
        let left = left(state.clone());
        let taken = async {
            let (mut state, mut messages) = (state, pin!(messages));
            while let Some(message) = messages.next().await {
                let event = message.into_lines().concat().into();
                self.change(number, |events| events.push(event));
                if state.wait_for(Events::have_place).await.is_err() {
                    return;
                }
            }
        };
        let has_ended = tokio::select! {
            () = left => false,
            () = taken => true,
        };
        if has_ended {
            self.change(number, |events| events.has_ended = true);
            sleep(KEPT).await;
        }
        let mut table = self.0.lock();
        table.streams.remove(&number);
        table.unread.retain(|unread| *unread != number);
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Events)) {
        if let Some(events) = self.0.lock().streams.get(&number) {
            events.send_modify(change);
        }
    }
}

/// Waits until a stream has had no connection for a while, or is given up.
async fn left(mut state: watch::Receiver<Events>) {
    loop {
        if state.wait_for(|events| !events.is_connected).await.is_err() {
            return;
        }
        let resumed = timeout(KEPT, state.wait_for(|events| events.is_connected));
        if !resumed.await.is_ok_and(|found| found.is_ok()) {
            return;
        }
    }
}

/// A connection that sends the events of a stream.
#[derive(Debug)]
pub(super) struct Connection {
    streams: Arc<Streams>,
    events: watch::Receiver<Events>,
    prefix: &'static str,
    number: u64,
    connection: u64,
    /// How many events the client has.
    passed: u64,
}

impl Connection {
    /// Returns the events, until the stream ends or another connection sends them.
    pub(super) fn events(self) -> impl Stream<Item = Sent> + Send + 'static {
        stream::unfold(self, async |mut connection| {
            let event = connection.next().await?;
            Some((event, connection))
        })
    }

    async fn next(&mut self) -> Option<Sent> {
        let (mine, passed) = (self.connection, self.passed);
        let is_due = |events: &Events| {
            events.connection != mine || events.has_ended || events.last() > passed
        };
        let (passed, event) = {
            let events = self.events.wait_for(is_due).await.ok()?;
            let is_mine = events.connection == mine;
            is_mine.then(|| events.after(passed)).flatten()?
        };
        self.passed = passed;
        self.streams
            .change(self.number, |events| events.sent(passed));
        let id = format!("{}{}-{passed}", self.prefix, self.number);
        Some(Sent::with_id(id, event))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut table = self.streams.0.lock();
        let mut was_mine = false;
        if let Some(events) = table.streams.get(&self.number) {
            was_mine = events.send_if_modified(|events| {
                let is_mine = events.connection == self.connection;
                events.is_connected &= !is_mine;
                is_mine
            });
        }
        if was_mine {
            table.unread.push_back(self.number);
            if table.unread.len() > MAX_UNREAD
                && let Some(oldest) = table.unread.pop_front()
            {
                table.streams.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::FutureExt;
    use proptest::prelude::*;
    use tokio::sync::mpsc;
    use tokio::task::yield_now;

    use super::super::events::{MAX_BYTES, MAX_EVENTS};
    use super::*;

    fn messages() -> (mpsc::UnboundedSender<Answer>, impl Stream<Item = Answer>) {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let messages = stream::poll_fn(move |cx| receiver.poll_recv(cx));
        (sender, messages)
    }

    fn message(number: usize, length: usize) -> Answer {
        Answer::from(format!("{number}{}", " ".repeat(length)).into_bytes())
    }

    async fn settle() {
        for _ in 0..4 {
            yield_now().await;
        }
    }

    /// Reads what is there: the id of the last event, and the numbers.
    fn read(events: &mut Pin<Box<dyn Stream<Item = Sent> + Send>>) -> (Option<String>, Vec<usize>) {
        let (mut last, mut numbers) = (None, Vec::new());
        while let Some(Some(event)) = events.next().now_or_never() {
            let (id, text) = event.into_parts();
            last = id;
            numbers.extend(text.trim().parse::<usize>());
        }
        (last, numbers)
    }

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Send(usize),
        Read,
        /// The connection breaks, and what it sent since this many reads is lost.
        Break,
    }

    proptest! {
        #[test]
        fn each_event_comes_once_and_in_order_however_often_it_breaks(
            primes: bool,
            steps in prop::collection::vec(prop_oneof![
                (1..20_usize).prop_map(Step::Send), Just(Step::Read), Just(Step::Break),
            ], 1..60),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
            runtime.block_on(async {
                let streams = Arc::<Streams>::default();
                let (sender, messages) = messages();
                let mut events = streams.open(OF_CALL, messages, primes).events().boxed();
                let (mut sent, mut seen, mut last) = (0, Vec::new(), None);
                for step in steps {
                    match step {
                        Step::Send(count) => {
                            for number in sent..sent + count {
                                sender.send(message(number, 1)).unwrap();
                            }
                            sent += count;
                            settle().await;
                        }
                        Step::Read => {
                            let (id, numbers) = read(&mut events);
                            seen.extend(numbers);
                            last = id.or(last);
                            settle().await;
                        }
                        Step::Break => {
                            // it takes at most what is kept, of which the client sees nothing
                            for _ in 0..8 {
                                drop(events.next().now_or_never());
                            }
                            drop(events);
                            let after = last.clone().unwrap_or_else(|| "c1-0".to_owned());
                            events = streams.resume(&after).unwrap().events().boxed();
                        }
                    }
                }
                drop(sender);
                while let Some(event) = events.next().await {
                    seen.extend(event.into_parts().1.trim().parse::<usize>());
                }
                prop_assert_eq!(seen, (0..sent).collect::<Vec<_>>());
                Ok(())
            })?;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_waits_30_s_for_its_client_and_is_kept_so_long_after_its_end() {
        let streams = Arc::<Streams>::default();
        let (sender, messages) = messages();
        let first = streams.open(OF_CALL, messages, true);
        let mut older = first.events().boxed();
        assert_eq!(read(&mut older).0.as_deref(), Some("c1-1"));
        let mut newer = streams.resume("c1-1").unwrap().events().boxed();
        sender.send(message(7, 1)).unwrap();
        settle().await;
        assert!(
            older.next().await.is_none(),
            "a message travels on one stream only"
        );
        drop(older);
        assert_eq!(read(&mut newer), (Some("c1-2".to_owned()), vec![7]));
        drop(newer);
        sleep(KEPT - Duration::from_secs(1)).await;
        // an event that was lost comes again
        let mut again = streams.resume("c1-1").unwrap().events().boxed();
        assert_eq!(read(&mut again).1, [7]);
        drop(again);
        sleep(KEPT + Duration::from_secs(1)).await;
        assert!(sender.is_closed(), "the call is given up");
        for gone in ["c1-2", "c1-9", "c2-0", "c", "", "x1-0", "c1-1-1", "c-1-0"] {
            assert!(streams.resume(gone).is_none(), "{gone}");
        }

        let (sender, messages) = self::messages();
        drop(streams.open(OF_CALL, messages, false));
        sender.send(message(1, 1)).unwrap();
        drop(sender);
        sleep(KEPT - Duration::from_secs(1)).await;
        let mut late = streams.resume("c2-0").unwrap().events().boxed();
        assert_eq!(late.next().await.unwrap().into_parts().1, "1 ");
        assert!(late.next().await.is_none());
        assert!(
            streams.resume("c2-1").is_none(),
            "nothing follows the answer"
        );
        sleep(KEPT).await;
        assert!(streams.resume("c2-0").is_none());
        assert_eq!(streams.0.lock().streams.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_of_streams_without_a_client_is_bounded() {
        let streams = Arc::<Streams>::default();
        let all: Vec<_> = (0..=MAX_UNREAD)
            .map(|_| {
                let (sender, messages) = messages();
                drop(streams.open(OF_CALL, messages, false));
                sender
            })
            .collect();
        settle().await;
        let closed: Vec<_> = all.iter().map(mpsc::UnboundedSender::is_closed).collect();
        assert!(closed[0] && !closed[1..].contains(&true), "{closed:?}");

        // a slow client holds its call up, and what was sent makes way
        let (sender, messages) = messages();
        let mut events = streams.open(OF_CALL, messages, false).events().boxed();
        for number in 0..3 * MAX_EVENTS as usize {
            sender.send(message(number, MAX_BYTES / 4 - 8)).unwrap();
        }
        settle().await;
        let number = streams.0.lock().last;
        let kept = || {
            let table = streams.0.lock();
            let events = table.streams[&number].borrow();
            (1..=events.last())
                .filter(|number| events.after(number - 1).unwrap().0 == *number)
                .count() as u64
        };
        assert_eq!(kept(), 5);
        for _ in 0..3 * MAX_EVENTS {
            assert!(events.next().await.is_some());
        }
        assert_eq!(kept(), 4);
    }
}
