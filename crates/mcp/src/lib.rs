//! Speaks MCP: upstream servers as leaves, and the server side, over stdio and streamable HTTP.

pub mod client;
mod large;
mod observed;
mod processes;
pub mod server;
mod sparse;
#[cfg(target_os = "linux")]
pub mod supervise;
pub mod wire;

/// What only fuzz targets can reach.
#[cfg(fuzzing)]
pub mod fuzzing {
    use bytes::Bytes;

    /// Returns the messages of an event stream that comes in these pieces, and why there are no
    /// more.
    #[must_use]
    pub fn events(pieces: Vec<Bytes>, limit: usize) -> (Vec<Bytes>, Option<String>) {
        let mut events = std::pin::pin!(crate::client::http_events(pieces, limit));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        loop {
            // it waits for nothing, and lets other tasks run now and then
            if let std::task::Poll::Ready(events) = events.as_mut().poll(&mut context) {
                return events;
            }
        }
    }
}
