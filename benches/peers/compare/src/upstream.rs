//! The server behind all peers, as a process that can be killed.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use peers_load::{Client, Endpoint, Era, fetch};
use peers_upstream::{Counts, Fault, Rule};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::Outcome;

/// A running upstream.
#[derive(Debug)]
pub(crate) struct Upstream {
    program: PathBuf,
    port: u16,
    pub(crate) endpoint: Endpoint,
    child: Child,
}

impl Upstream {
    pub(crate) async fn start(program: &Path) -> Outcome<Self> {
        let port = free_port()?;
        let endpoint =
            Endpoint::new(&format!("http://127.0.0.1:{port}/mcp")).ok_or("no address")?;
        let child = spawn(program, port)?;
        let upstream = Self {
            program: program.to_owned(),
            port,
            endpoint,
            child,
        };
        answers(&upstream.endpoint, Duration::from_secs(10)).await?;
        Ok(upstream)
    }

    async fn control(&self, method: Method, path: &str, body: Bytes) -> Outcome<Bytes> {
        let exchange = fetch(&self.endpoint.at(path), method, body).await?;
        if exchange.status.is_success() {
            return Ok(exchange.body);
        }
        let body = String::from_utf8_lossy(&exchange.body).into_owned();
        Err(format!("{path}: {body}").into())
    }

    pub(crate) async fn reset(&self) -> Outcome<()> {
        self.control(Method::POST, "/control/reset", Bytes::new())
            .await?;
        Ok(())
    }

    /// From now on this share of each of these tools' answers is lost.
    pub(crate) async fn lose(&self, tools: &[&str], fault: Fault, share: f64) -> Outcome<()> {
        let rule = Rule {
            fault,
            share,
            seed: 1,
        };
        let rules: HashMap<_, _> = tools.iter().map(|tool| (*tool, rule.clone())).collect();
        let body = serde_json::to_vec(&rules)?.into();
        self.control(Method::POST, "/control/faults", body).await?;
        Ok(())
    }

    /// Changes items as a person would, past all servers.
    pub(crate) async fn change(&self, items: BTreeMap<String, String>) -> Outcome<()> {
        let body = serde_json::to_vec(&items)?.into();
        self.control(Method::POST, "/control/items", body).await?;
        Ok(())
    }

    /// The second server over the same items.
    pub(crate) fn other(&self) -> Endpoint {
        self.endpoint.at("/other/mcp")
    }

    /// The server with sessions.
    pub(crate) fn sessions(&self) -> Endpoint {
        self.endpoint.at("/session/mcp")
    }

    pub(crate) async fn counts(&self) -> Outcome<Counts> {
        let body = self
            .control(Method::GET, "/control/counts", Bytes::new())
            .await?;
        Ok(serde_json::from_slice(&body)?)
    }

    pub(crate) async fn kill(&mut self) -> Outcome<()> {
        Ok(self.child.kill().await?)
    }

    /// Another process at the same address.
    pub(crate) async fn again(&mut self) -> Outcome<()> {
        self.child = spawn(&self.program, self.port)?;
        answers(&self.endpoint, Duration::from_secs(10)).await
    }
}

fn spawn(program: &Path, port: u16) -> Outcome<Child> {
    Command::new(program)
        .arg(format!("127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()).into())
}

/// A free port, another one each time: processes start side by
/// side. It is below those that Linux gives to connections, of which there are many.
pub(crate) fn free_port() -> Outcome<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(PORTS.start);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        if !PORTS.contains(&port) {
            return Err(format!("no port is free from {} to {}", PORTS.start, PORTS.end).into());
        }
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
}

const PORTS: Range<u16> = 21_000..32_768;

/// Waits until tools are listed.
pub(crate) async fn answers(endpoint: &Endpoint, long: Duration) -> Outcome<()> {
    let until = Instant::now() + long;
    loop {
        let found = match Client::connect(endpoint, Era::Legacy).await {
            Ok(mut client) => client.name_of("noop_get").await,
            Err(error) => Err(error),
        };
        match found {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > until => {
                return Err(format!("not up after {} s: {error}", long.as_secs()).into());
            }
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn no_port_is_given_twice_nor_while_it_is_listened_on() {
        let first = free_port().unwrap();
        let taken = (first + 1..PORTS.end)
            .find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok())
            .unwrap();
        let port = taken.local_addr().unwrap().port();
        let further: Vec<_> = (0..20).map(|_| free_port().unwrap()).collect();
        assert!(further.is_sorted_by(|one, two| one < two), "{further:?}");
        assert!(!further.contains(&first) && !further.contains(&port));
    }
}
