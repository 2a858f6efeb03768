//! How many files the system lets the process open, and connections that fit in.

use super::ConnectionLimits;

/// Descriptors for everything but clients: servers, logs, the state directory.
const OTHERS: u64 = 512;

/// These connections always remain.
const FEWEST: u64 = 16;

/// Makes the limits leave descriptors for servers even if both listeners have their maximum of
/// connections: raises the soft limit of open files as far as that needs and the hard limit allows,
/// and lowers the number of connections if that is not enough.
pub(crate) fn make_fit(limits: &mut ConnectionLimits) {
    let wanted = descriptors(limits.all as u64);
    let has = rlimit::increase_nofile_limit(wanted).unwrap_or(wanted);
    let fitting = usize::try_from(connections(has)).unwrap_or(limits.all);
    if has < wanted && fitting < limits.all {
        tracing::warn!(
            "this process may open {has} files: each listener takes {fitting} connections at most, and \
             not the {} of `http.max_connections`; raise the limit (`ulimit -n {wanted}`)",
            limits.all
        );
        limits.all = fitting;
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
