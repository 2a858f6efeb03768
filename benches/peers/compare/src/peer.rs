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
    pub(crate) callward: PathBuf,
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
    pub(crate) configuration: Configuration,
    /// What the table says about it.
    pub(crate) setup: &'static str,
    /// Whether anything is kept between calls.
    pub(crate) caches: bool,
    how: How,
}

/// Which of a peer's configurations one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Configuration {
    /// There is not a peer.
    None,
    Default,
    Cached,
}

impl Configuration {
    /// As the table says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Default => "default",
            Self::Cached => "with cache",
        }
    }
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
        configuration: Configuration::None,
        setup: "no peer: the upstream itself",
        caches: false,
        how: How::Direct,
    },
    Peer {
        name: "Callward",
        package: "callward",
        configuration: Configuration::Default,
        setup: "defaults (`cache.freshness = \"learned\"`): nothing but addresses and the upstream",
        caches: true,
        how: How::Config("callward"),
    },
    Peer {
        name: "Callward fixed",
        package: "callward",
        configuration: Configuration::Cached,
        setup: "`cache.freshness = \"fixed\"`, `instances = \"shared\"`",
        caches: true,
        how: How::Config("callward-fixed"),
    },
    Peer {
        name: "mcp-proxy",
        package: "mcp-proxy",
        configuration: Configuration::Default,
        setup: "crate, as a library, no default features; one backend, no layers",
        caches: false,
        how: How::Config("mcp-proxy-plain"),
    },
    Peer {
        name: "mcp-proxy full",
        package: "mcp-proxy",
        configuration: Configuration::Cached,
        setup: "with cache (1 h), coalescing, retry (3 from 50 ms), breaker (defaults)",
        caches: true,
        how: How::Config("mcp-proxy-full"),
    },
    Peer {
        name: "FastMCP",
        package: "fastmcp",
        configuration: Configuration::Default,
        setup: "`create_proxy(URL)`: an upstream session for each request",
        caches: false,
        how: How::FastMcp("plain"),
    },
    Peer {
        name: "FastMCP cache+retry",
        package: "fastmcp",
        configuration: Configuration::Cached,
        setup: "with `RetryMiddleware()` and `ResponseCachingMiddleware()`, their defaults",
        caches: true,
        how: How::FastMcp("full"),
    },
    Peer {
        name: "FastMCP lean",
        package: "fastmcp",
        configuration: Configuration::Cached,
        setup: "a connected client, no sessions, JSON; the cache's defaults, retry of any failure (3 from 50 ms)",
        caches: true,
        how: How::FastMcp("lean"),
    },
    Peer {
        name: "NeuroLink",
        package: "@juspay/neurolink",
        configuration: Configuration::Default,
        setup: "`executeTool` behind a small HTTP front of ours; defaults, but its limit of 60 calls a minute lifted",
        caches: false,
        how: How::NeuroLink(&[]),
    },
    Peer {
        name: "NeuroLink cache",
        package: "@juspay/neurolink",
        configuration: Configuration::Cached,
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

    fn command(
        &self,
        places: &Places,
        port: u16,
        upstreams: &[Endpoint],
    ) -> Outcome<Option<Command>> {
        let mut command = match self.how {
            How::Direct => return Ok(None),
            How::Config(name) => {
                let file = config(places, name, port, upstreams)?;
                if self.package == "callward" {
                    let mut command = Command::new(&places.callward);
                    command.args(["serve", "--config"]).arg(file);
                    let state = fresh(places, &format!("{name}-{port}"))?;
                    command
                        .env_remove("XDG_STATE_HOME")
                        .env("HOME", &state)
                        .env("CALLWARD_STATE_DIR", state.join("callward"));
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
                command.args([&port.to_string(), &joined(upstreams), word]);
                command
            }
            How::NeuroLink(words) => {
                let mut command = Command::new("node");
                command
                    .current_dir(places.home.join("node"))
                    .arg("front.mjs");
                command
                    .args([port.to_string(), joined(upstreams)])
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

    /// Before these servers, at least one. Without a peer it is the first of them.
    pub(crate) async fn start(&self, places: &Places, upstreams: &[Endpoint]) -> Outcome<Running> {
        let port = free_port()?;
        let Some(mut command) = self.command(places, port, upstreams)? else {
            return Ok(Running {
                endpoint: upstreams.first().ok_or("no upstream")?.clone(),
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

/// A folder for the state of one process, with nothing in it.
fn fresh(places: &Places, name: &str) -> Outcome<PathBuf> {
    let folder = places.home.join("state").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn joined(upstreams: &[Endpoint]) -> String {
    let urls: Vec<_> = upstreams.iter().map(Endpoint::to_string).collect();
    urls.join(",")
}

fn config(places: &Places, name: &str, port: u16, upstreams: &[Endpoint]) -> Outcome<PathBuf> {
    let template = read(&places.sources.join(format!("configs/{name}.toml")))?;
    let text = filled(&template, port, upstreams)
        .ok_or_else(|| format!("configs/{name}.toml has no line `{EACH}`"))?;
    let folder = places.home.join("configs");
    fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{name}-{port}.toml"));
    fs::write(&file, text)?;
    Ok(file)
}

/// What follows this line of a config is there once for each upstream.
const EACH: &str = "# for each upstream";

fn filled(template: &str, port: u16, upstreams: &[Endpoint]) -> Option<String> {
    let (head, each) = template.split_once(&format!("{EACH}\n"))?;
    let mut text = head.replace("{port}", &port.to_string());
    for (place, upstream) in upstreams.iter().enumerate() {
        let each = each.replace("{name}", &format!("up{place}"));
        text.push_str(&each.replace("{url}", &upstream.to_string()));
        text.push('\n');
    }
    Some(text)
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(home: PathBuf) -> Places {
        Places {
            programs: home.clone(),
            callward: home.join("callward"),
            sources: Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
            home,
        }
    }

    #[test]
    fn each_upstream_has_its_own_part_of_a_config() {
        let template = format!("port = {{port}}\n{EACH}\n[{{name}}]\nurl = \"{{url}}\"\n");
        let upstreams =
            ["http://h:1/mcp", "http://h:1/other/mcp"].map(|url| Endpoint::new(url).unwrap());
        assert_eq!(
            filled(&template, 7, &upstreams).unwrap(),
            "port = 7\n[up0]\nurl = \"http://h:1/mcp\"\n\n[up1]\nurl = \"http://h:1/other/mcp\"\n\n"
        );
        assert_eq!(filled("no such line", 7, &upstreams), None);
    }

    #[test]
    fn every_config_has_a_part_for_each_upstream() {
        let places = places(PathBuf::new());
        for peer in PEERS {
            if let How::Config(name) = peer.how {
                let template = read(&places.sources.join(format!("configs/{name}.toml"))).unwrap();
                let upstream = Endpoint::new("http://h:1/mcp").unwrap();
                let text = filled(&template, 7, &[upstream]).unwrap();
                assert!(
                    text.contains("up0") && text.contains("http://h:1/mcp"),
                    "{name}"
                );
                assert!(!text.contains('{'), "{name}: {text}");
            }
        }
    }

    #[test]
    fn the_gateway_uses_no_state_of_whoever_starts_it() {
        let home = std::env::temp_dir().join(format!("peers-state-{}", std::process::id()));
        let places = places(home.clone());
        let left = home.join("state/callward-7/callward/evidence");
        fs::create_dir_all(&left).unwrap();
        let peer = PEERS.iter().find(|peer| peer.name == "Callward").unwrap();
        let upstream = Endpoint::new("http://h:1/mcp").unwrap();
        let command = peer.command(&places, 7, &[upstream]).unwrap().unwrap();
        let set: Vec<_> = command.as_std().get_envs().collect();
        for name in ["HOME", "CALLWARD_STATE_DIR"] {
            let value = set
                .iter()
                .find(|(own, _)| *own == name)
                .and_then(|(_, value)| *value);
            assert!(Path::new(value.unwrap()).starts_with(&home), "{name}");
        }
        assert!(
            set.iter()
                .any(|(name, value)| *name == "XDG_STATE_HOME" && value.is_none())
        );
        assert!(!left.exists());
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn every_peer_has_a_default_beside_its_cached_configuration() {
        for peer in PEERS {
            if peer.configuration == Configuration::Cached {
                let default = |other: &&Peer| {
                    other.package == peer.package && other.configuration == Configuration::Default
                };
                assert!(PEERS.iter().any(|other| default(&other)), "{}", peer.name);
            }
        }
    }
}
