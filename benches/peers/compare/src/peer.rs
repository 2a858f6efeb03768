//! Who is compared, and how each is started.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use peers_load::Endpoint;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::Outcome;
use crate::upstream::{answers, free_port};

/// Where everything that was built and installed is.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// Of this workspace.
    pub(crate) programs: PathBuf,
    pub(crate) tollgate: PathBuf,
    /// With `venv`, `node`, `failed`, and what is written here.
    pub(crate) home: PathBuf,
    /// This workspace's sources.
    pub(crate) sources: PathBuf,
}

/// One configuration of one peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// What it is installed as.
    pub(crate) package: &'static str,
    /// What the table says about it.
    pub(crate) setup: &'static str,
    pub(crate) caches: bool,
    how: How,
}

#[derive(Debug, Clone, Copy)]
enum How {
    /// The upstream itself.
    Direct,
    /// A program with a file made from `configs/NAME.toml`.
    Config(&'static str),
    /// `fastmcp/proxy.py` with this word.
    FastMcp(&'static str),
    /// `neurolink/front.mjs` with these words.
    NeuroLink(&'static [&'static str]),
}

/// All of them, in the order of the table.
pub(crate) const PEERS: &[Peer] = &[
    Peer {
        name: "direct",
        package: "rmcp",
        setup: "no peer: the upstream itself",
        caches: false,
        how: How::Direct,
    },
    Peer {
        name: "Tollgate",
        package: "tollgate",
        setup: "defaults: nothing but an address and the upstream",
        caches: true,
        how: How::Config("tollgate"),
    },
    Peer {
        name: "mcp-proxy",
        package: "mcp-proxy",
        setup: "crate, as a library, no default features; one backend, no layers",
        caches: false,
        how: How::Config("mcp-proxy-plain"),
    },
    Peer {
        name: "mcp-proxy full",
        package: "mcp-proxy",
        setup: "with cache (1 h), coalescing, retry (3 from 50 ms), breaker (defaults)",
        caches: true,
        how: How::Config("mcp-proxy-full"),
    },
    Peer {
        name: "FastMCP",
        package: "fastmcp",
        setup: "`create_proxy(URL)`: an upstream session for each request",
        caches: false,
        how: How::FastMcp("plain"),
    },
    Peer {
        name: "FastMCP cache+retry",
        package: "fastmcp",
        setup: "with `RetryMiddleware()` and `ResponseCachingMiddleware()`, their defaults",
        caches: true,
        how: How::FastMcp("full"),
    },
    Peer {
        name: "FastMCP lean",
        package: "fastmcp",
        setup: "a connected client, no sessions, JSON; the cache's defaults, retry of any failure (3 from 50 ms)",
        caches: true,
        how: How::FastMcp("lean"),
    },
    Peer {
        name: "NeuroLink",
        package: "@juspay/neurolink",
        setup: "`executeTool` behind a small HTTP front of ours; defaults, but its limit of 60 calls a minute lifted",
        caches: false,
        how: How::NeuroLink(&[]),
    },
    Peer {
        name: "NeuroLink cache",
        package: "@juspay/neurolink",
        setup: "the same with `mcp.cache` on, 100,000 entries",
        caches: true,
        how: How::NeuroLink(&["cache"]),
    },
];

/// A peer at work; its process ends with it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) endpoint: Endpoint,
    pub(crate) pid: Option<u32>,
    pub(crate) start_seconds: f64,
    _child: Option<Child>,
}

impl Peer {
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self.how, How::Direct)
    }

    /// Why it could not be installed, if that is so.
    pub(crate) fn refused(&self, places: &Places) -> Option<String> {
        let file = self.package.trim_start_matches("@juspay/");
        fs::read_to_string(places.home.join("failed").join(file)).ok()
    }

    fn command(&self, places: &Places, port: u16, upstream: &Endpoint) -> Outcome<Option<Command>> {
        let mut command = match self.how {
            How::Direct => return Ok(None),
            How::Config(name) => {
                let file = config(places, name, port, upstream)?;
                if self.package == "tollgate" {
                    let mut command = Command::new(&places.tollgate);
                    command.args(["serve", "--config"]).arg(file);
                    command
                } else {
                    let mut command = Command::new(places.programs.join("rs-proxy"));
                    command.arg(file);
                    command
                }
            }
            How::FastMcp(word) => {
                let mut command = Command::new(places.home.join("venv/bin/python"));
                command.arg(places.sources.join("fastmcp/proxy.py"));
                command.args([&port.to_string(), &upstream.to_string(), word]);
                command
            }
            How::NeuroLink(words) => {
                let mut command = Command::new("node");
                command
                    .current_dir(places.home.join("node"))
                    .arg("front.mjs");
                command
                    .args([port.to_string(), upstream.to_string()])
                    .args(words);
                command
            }
        };
        let folder = places.home.join("logs");
        fs::create_dir_all(&folder)?;
        let log = File::create(folder.join(format!("{}-{port}.log", self.name.replace(' ', "-"))))?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true);
        Ok(Some(command))
    }

    pub(crate) async fn start(&self, places: &Places, upstream: &Endpoint) -> Outcome<Running> {
        let port = free_port()?;
        let Some(mut command) = self.command(places, port, upstream)? else {
            return Ok(Running {
                endpoint: upstream.clone(),
                pid: None,
                start_seconds: 0.0,
                _child: None,
            });
        };
        let begun = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", self.name))?;
        let path = if self.package == "mcp-proxy" {
            ""
        } else {
            "mcp"
        };
        let endpoint =
            Endpoint::new(&format!("http://127.0.0.1:{port}/{path}")).ok_or("no address")?;
        answers(&endpoint, Duration::from_secs(60)).await?;
        if let Some(status) = child.try_wait()? {
            return Err(format!("{} ended by itself: {status}", self.name).into());
        }
        Ok(Running {
            endpoint,
            pid: child.id(),
            start_seconds: begun.elapsed().as_secs_f64(),
            _child: Some(child),
        })
    }
}

fn config(places: &Places, name: &str, port: u16, upstream: &Endpoint) -> Outcome<PathBuf> {
    let template = read(&places.sources.join(format!("configs/{name}.toml")))?;
    let text = template
        .replace("{port}", &port.to_string())
        .replace("{upstream}", &upstream.to_string());
    let folder = places.home.join("configs");
    fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{name}-{port}.toml"));
    fs::write(&file, text)?;
    Ok(file)
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}
