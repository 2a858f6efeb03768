//! Makes grants, lists and revokes them, and finds those that answer.

use std::sync::Arc;

use crate::clock::now_ms;
use crate::{ApprovalError, Approvals, Asked, Grant, RequestId};

impl Approvals {
    /// Puts a grant into force: requests that are made from now on are approved by it.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::NeedsPattern`], [`Lifetime`](ApprovalError::Lifetime),
    /// [`DecidedByTheOneThatAsks`](ApprovalError::DecidedByTheOneThatAsks) if it is for the
    /// principal that gives it, [`TooManyGrants`](ApprovalError::TooManyGrants), or the failure of
    /// the store.
    pub async fn grant(&self, grant: Grant) -> Result<Arc<Grant>, ApprovalError> {
        grant.validate()?;
        // those that expired leave their places
        self.sweep().await?;
        let grant = Arc::new(grant);
        match self.0.store.put_grant(grant.clone()).await? {
            true => Ok(grant),
            false => Err(ApprovalError::TooManyGrants),
        }
    }

    /// Lists the grants that have not expired, the oldest first; those that are used up, too.
    ///
    /// # Errors
    ///
    /// The failure of the store.
    pub async fn grants(&self) -> Result<Vec<Arc<Grant>>, ApprovalError> {
        let (now, mut all) = (now_ms(), self.0.store.grants().await?);
        all.retain(|grant| now < grant.expires_ms);
        all.sort_unstable_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
        Ok(all)
    }

    /// Ends a grant. A request that it approved, and that has not run, stays approved.
    ///
    /// # Errors
    ///
    /// [`ApprovalError::NoGrant`], or the failure of the store.
    pub async fn revoke(&self, id: &RequestId) -> Result<(), ApprovalError> {
        match self.0.store.remove_grant(id.clone()).await? {
            true => Ok(()),
            false => Err(ApprovalError::NoGrant(id.clone())),
        }
    }

    /// Returns the grant that approves a call: of several, the one that expires first.
    pub(crate) async fn granting(
        &self,
        asked: &Asked,
    ) -> Result<Option<Arc<Grant>>, ApprovalError> {
        let all = self.0.store.grants().await?.into_iter();
        let answering = all.filter(|grant| grant.answers(asked));
        Ok(answering.min_by(|a, b| (a.expires_ms, &a.id).cmp(&(b.expires_ms, &b.id))))
    }

    /// Removes the grants that have expired.
    pub(crate) async fn sweep_grants(&self) -> Result<(), ApprovalError> {
        let now = now_ms();
        for grant in self.0.store.grants().await? {
            if grant.expires_ms <= now {
                self.0.store.remove_grant(grant.id.clone()).await?;
            }
        }
        Ok(())
    }
}
