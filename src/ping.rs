//! Asking one server now and then whether it is there.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use callward_core::ToolServer;
use callward_router::{PingConfig, Pings, Presence, Verdict, Witness, judge};
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::herald::Herald;

/// Asks one server now and then whether it is there, for as long as the stack lives.
///
/// It finds what neither a connection shows nor a call that nobody makes: a process that hangs with
/// its pipes open, a host that went away without a word. Nobody's call has to find out.
pub(crate) struct Pinger {
    pub(crate) server: Arc<dyn ToolServer>,
    pub(crate) config: PingConfig,
    pub(crate) herald: Herald,
    /// Whether the connection is there: where it is known to be lost, there is nothing to ask.
    pub(crate) connection: watch::Receiver<bool>,
}

impl Pinger {
    pub(crate) async fn run(self) {
        let Self {
            server,
            config,
            herald,
            mut connection,
        } = self;
        // what cannot be waited for any more has ended with the stack
        while connection.wait_for(|is_there| *is_there).await.is_ok() {
            tokio::select! {
                () = watch_over(&*server, config, &herald) => {}
                _ = connection.wait_for(|is_there| !is_there) => {}
            }
            // the next connection begins without a past
            herald.tell(Witness::Ping, Presence::Up);
        }
    }
}

/// Never returns.
async fn watch_over(server: &dyn ToolServer, config: PingConfig, herald: &Herald) {
    let mut pings = Pings::new(config);
    sleep(pings.first_pause()).await;
    loop {
        // a server may be unable to answer while it works, and then its calls tell how it is
        let counts = |answered: &bool| *answered || !herald.is_busy();
        let answered = ping(server, &config).await.filter(counts);
        if let Some(presence) = answered.and_then(|answered| pings.note(answered)) {
            herald.tell(Witness::Ping, presence);
        }
        sleep(pings.pause()).await;
    }
}

/// Says whether a ping was answered, if that can be said.
async fn ping(server: &dyn ToolServer, config: &PingConfig) -> Option<bool> {
    let ping = async move { server.ping().await };
    let answer = timeout(config.timeout, AssertUnwindSafe(ping).catch_unwind()).await;
    let error = match answer {
        Ok(Ok(Ok(()))) => return Some(true),
        Ok(Ok(Err(error))) => error,
        // too late, or it panicked
        Ok(Err(_)) | Err(_) => return Some(false),
    };
    tracing::debug!(server = %server.id(), %error, "ping failed");
    match judge(&Err(error)) {
        Verdict::Good => Some(true),
        Verdict::Fault => Some(false),
        Verdict::Nothing => None,
    }
}
