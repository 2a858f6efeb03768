//! How many files the system lets the process open, and connections that fit in.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::ConnectionLimits;

/// Descriptors for everything but clients: servers, logs, the state directory.
const OTHERS: u64 = 512;

/// These connections always remain.
const FEWEST: u64 = 16;

/// Makes the limits leave descriptors for servers even if both listeners have their maximum of
/// connections: raises the soft limit of open files as far as that needs and the hard limit allows,
/// and lowers the number of connections if that is not enough.
pub(crate) fn make_fit(limits: &mut ConnectionLimits) {
    let Some(wanted) = u64::try_from(limits.all).ok().map(descriptors) else {
        return;
    };
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(current) = current.filter(|current| *current < wanted) else {
        return;
    };
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let new = Rlimit {
        current: Some(raised),
        maximum,
    };
    let has = match setrlimit(Resource::Nofile, new) {
        Ok(()) => raised,
        Err(_) => current,
    };
    let fitting = connections(has);
    if has < wanted && u64::try_from(limits.all).is_ok_and(|all| fitting < all) {
        tracing::warn!(
            "this process may open {has} files: each listener takes {fitting} connections at most, and \
             not the {} of `http.max_connections`; raise the limit (`ulimit -n {wanted}`)",
            limits.all
        );
        limits.all = usize::try_from(fitting).unwrap_or(limits.all);
    }
}

/// Returns how many descriptors `connections` of each listener need.
const fn descriptors(connections: u64) -> u64 {
    connections.saturating_mul(2).saturating_add(OTHERS)
}

/// Returns how many connections each listener may have with this number of descriptors: if there
/// are few, half of them are reserved for everything else.
fn connections(descriptors: u64) -> u64 {
    let others = OTHERS.min(descriptors / 2);
    ((descriptors - others) / 2).max(FEWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_everything_else() {
        for (has, fitting) in [(64, 16), (256, 64), (1024, 256), (2560, 1024), (20, 16)] {
            assert_eq!(connections(has), fitting, "{has}");
        }
        assert_eq!(connections(descriptors(1024)), 1024);
    }
}
