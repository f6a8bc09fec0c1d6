//! [`OpenCall`]: a call that waits for its reply.

use rmcp::RoleClient;
use rmcp::model::ServerResult;
use rmcp::service::{RequestHandle, ServiceError};

/// A call that the server works on; dropping it tells the server to stop.
pub(crate) struct OpenCall(Option<RequestHandle<RoleClient>>);

impl OpenCall {
    pub(crate) fn new(handle: RequestHandle<RoleClient>) -> Self {
        Self(Some(handle))
    }

    pub(crate) fn handle(&self) -> &RequestHandle<RoleClient> {
        self.0.as_ref().expect("a call is open until its reply is there")
    }

    /// The reply; not to be asked for again.
    pub(crate) async fn reply(&mut self) -> Result<ServerResult, ServiceError> {
        let handle = self.0.as_mut().expect("a call is open until its reply is there");
        let reply = (&mut handle.rx).await;
        self.0 = None;
        reply.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(handle.cancel(Some("the caller no longer waits".to_owned())));
        }
    }
}
