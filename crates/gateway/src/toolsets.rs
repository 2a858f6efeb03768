//! `[toolsets]`: which tools a client sees, and the notes about them.
//!
//! A client sees the tools of a toolset and the built-in ones: by the path it uses, or by what its
//! session has equipped, or by default. Without a toolset it sees all tools. What the rules hide
//! stays hidden.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use callward::core::{BoxStream, Caller, List, SessionId};
use callward::registry::{Catalogue, Entry};
use callward_mcp::server::{self, Identified, Identify, Refused};
use callward_toolset::{Name, Store, ToolsetError, Toolsets as All, View};
use futures_util::future::Either;
use futures_util::{FutureExt, stream};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::builtin;
use crate::config::Config;
use crate::error::AppError;
use crate::state_dir::StateDir;

/// How often the file is looked at: other processes change it, too.
const LOOK: Duration = Duration::from_secs(1);

/// How many sessions may have chosen a toolset.
const MAX_SESSIONS: usize = 1 << 16;

/// Where the paths of toolsets begin.
const PATHS: &str = "/t/";

/// Returns the path at which clients see a toolset.
pub(crate) fn path_of(name: &str) -> String {
    format!("{}{PATHS}{name}", server::PATH)
}

/// Returns the toolset whose path this is.
pub(crate) fn of_path(path: &str) -> Option<&str> {
    path.strip_prefix(server::PATH)?.strip_prefix(PATHS)
}

/// Returns the file of a config's toolsets.
///
/// # Errors
///
/// [`AppError::Usage`] if there is no place for it.
pub(crate) fn file(
    config: &Config,
    file: Option<&Path>,
    state: Option<&StateDir>,
) -> Result<PathBuf, AppError> {
    let of_config = || state?.file_of_config("toolsets", file?, "json");
    let path = config.toolsets.path.clone().or_else(of_config);
    path.ok_or_else(|| {
        let why = "there is no state directory for the toolsets: give one with --state-dir, or set \
                   `toolsets.path` to the path of a file";
        AppError::Usage(why.to_owned())
    })
}

/// The toolsets of a gateway, and who sees which.
pub(crate) struct Toolsets {
    store: Store,
    /// What sessions have chosen: a toolset, or all tools.
    sessions: Mutex<HashMap<SessionId, Option<Name>>>,
    views: Mutex<Views>,
    /// Counts the changes of toolsets and of choices.
    changed: watch::Sender<u64>,
}

/// The views of one catalogue and one state of the file, by their generations.
type Views = ((u64, u64), HashMap<Name, Arc<View>>);

/// The toolset that a caller sees. One that was deleted has no tools.
#[derive(Clone)]
pub(crate) struct Active {
    pub(crate) name: Name,
    /// The state of the file.
    pub(crate) generation: u64,
    pub(crate) view: Arc<View>,
}

impl Active {
    /// Returns the `tools/list` object of a tool, with its notes; `None` if the caller does not see
    /// the tool.
    pub(crate) fn listed<'a>(&'a self, entry: &'a Entry) -> Option<&'a bytes::Bytes> {
        match builtin::is_builtin(entry.tool()) {
            true => Some(entry.listed()),
            false => self.view.listed(entry.client_name()),
        }
    }
}

impl Toolsets {
    /// Reads the file, if the config has toolsets.
    ///
    /// # Errors
    ///
    /// [`AppError`] if there is no place for the file, or it cannot be read.
    pub(crate) fn open(
        config: &Config,
        at: Option<&Path>,
        state: Option<&StateDir>,
    ) -> Result<Option<Arc<Self>>, AppError> {
        if !config.toolsets.enabled {
            return Ok(None);
        }
        Ok(Some(Arc::new(Self {
            store: Store::open(file(config, at, state)?)?,
            sessions: Mutex::default(),
            views: Mutex::default(),
            changed: watch::Sender::new(0),
        })))
    }

    /// Returns the toolsets as they are now.
    pub(crate) fn all(&self) -> Arc<callward_toolset::Snapshot> {
        self.store.toolsets()
    }

    /// Returns the toolset that a caller sees, over this catalogue; `None` if it sees all tools.
    pub(crate) fn active(&self, catalogue: &Catalogue, caller: &Caller) -> Option<Active> {
        let all = self.store.toolsets();
        let name = self.chosen(&all.file, caller)?;
        let generation = all.generation;
        let of = (catalogue.generation(), generation);
        let mut views = self.views.lock();
        if views.0 != of {
            *views = (of, HashMap::new());
        }
        let view = match (views.1.get(&name), all.file.toolsets.get(name.as_str())) {
            (Some(known), _) => known.clone(),
            (None, Some(toolset)) => {
                let view = Arc::new(View::new(toolset, catalogue));
                views.1.insert(name.clone(), view.clone());
                view
            }
            (None, None) => Arc::default(),
        };
        Some(Active {
            name,
            generation,
            view,
        })
    }

    /// The path comes first, then what the session chose, then the default.
    fn chosen(&self, all: &All, caller: &Caller) -> Option<Name> {
        if let Some(name) = &caller.toolset {
            return name.parse().ok();
        }
        let session = caller.session.as_ref();
        if let Some(choice) = session.and_then(|it| self.sessions.lock().get(it).cloned()) {
            return choice;
        }
        let mut of_caller = all
            .toolsets
            .iter()
            .filter(|(_, it)| it.is_default_for(caller));
        of_caller.next().map(|(name, _)| name.clone())
    }

    /// Sets what the caller's session sees. Returns `false` if it cannot choose: a path is fixed,
    /// and where there is no session, no call changes what the next request sees.
    pub(crate) fn choose(&self, caller: &Caller, choice: Option<Name>) -> bool {
        let Some(session) = caller.session.as_ref().filter(|_| caller.toolset.is_none()) else {
            return false;
        };
        let mut sessions = self.sessions.lock();
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(session) {
            return false;
        }
        sessions.insert(session.clone(), choice);
        drop(sessions);
        self.changed.send_modify(|count| *count += 1);
        true
    }

    /// Forgets what a session chose.
    pub(crate) fn session_ended(&self, caller: &Caller) {
        if let Some(session) = &caller.session {
            self.sessions.lock().remove(session);
        }
    }

    /// Changes the toolsets. Once it returns, the change is durable.
    ///
    /// # Errors
    ///
    /// What is wrong, for an agent: errors of the file are the operator's, and are logged.
    pub(crate) async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut All) -> Result<T, ToolsetError> + Send + 'static,
    ) -> Result<T, String> {
        let toolsets = self.clone();
        let done = tokio::task::spawn_blocking(move || toolsets.store.change(change)).await;
        self.changed.send_modify(|count| *count += 1);
        let done = done.map_err(|error| error.to_string())?;
        done.map_err(|error| match error.is_of_file() {
            true => {
                tracing::error!(%error, "the toolsets cannot be changed");
                "the toolsets cannot be changed now: the operator has to look at their file".into()
            }
            false => error.to_string(),
        })
    }

    /// Follows changes of the file by other processes; never ends.
    pub(crate) async fn watch(self: &Arc<Self>) -> Infallible {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failed = false;
        loop {
            looks.tick().await;
            let toolsets = self.clone();
            let read = tokio::task::spawn_blocking(move || toolsets.store.refresh()).await;
            let Ok(read) = read else { continue };
            match &read {
                Ok(true) => self.changed.send_modify(|count| *count += 1),
                // once for each time that it goes wrong
                Err(error) if !failed => {
                    tracing::error!(%error, "the toolsets stay as they were");
                }
                _ => {}
            }
            failed = read.is_err();
        }
    }

    /// Returns a stream with one item for each change of toolsets or choices.
    pub(crate) fn changes(&self) -> BoxStream<'static, List> {
        let changed = self.changed.subscribe();
        Box::pin(stream::unfold(changed, |mut changed| async move {
            changed.changed().await.ok()?;
            Some((List::Tools, changed))
        }))
    }
}

/// Identifies the callers at the paths of toolsets, too.
pub(crate) struct ByPath {
    pub(crate) identify: Arc<dyn Identify>,
    pub(crate) toolsets: Arc<Toolsets>,
}

impl Identify for ByPath {
    fn identify(&self, request: &Parts) -> Identified {
        let found = self.identify.identify(request);
        let Some(name) = of_path(request.uri.path()) else {
            return found;
        };
        let is_known = self.toolsets.all().file.toolsets.contains_key(name);
        let name: Arc<str> = name.into();
        // after the credential: who has none learns of no toolset
        let with_toolset = move |caller: Result<Arc<Caller>, Refused>| {
            let mut caller = Caller::clone(&*caller?);
            match is_known {
                true => {
                    caller.toolset = Some(name);
                    Ok(Arc::new(caller))
                }
                false => {
                    let name: String = name.chars().take(Name::MAX).collect();
                    let why = format!(
                        "no toolset is called {name:?}: `{}` has all tools",
                        server::PATH
                    );
                    Err(Refused::new(StatusCode::NOT_FOUND, why))
                }
            }
        };
        match found {
            Either::Left(found) => Either::Left(ready(with_toolset(found.into_inner()))),
            Either::Right(found) => Either::Right(Box::pin(found.map(with_toolset))),
        }
    }

    fn step_up(&self, request: &Parts, scopes: &str) -> Option<HeaderValue> {
        self.identify.step_up(request, scopes)
    }
}
