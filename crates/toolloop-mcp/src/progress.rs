//! [`Progress`]: brings reports of progress to the calls they belong to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    JsonRpcError, JsonRpcMessage, ProgressNotificationParam, ProgressToken, RequestId,
    ServerNotification,
};
use rmcp::service::{RequestHandle, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use toolloop_core::CallContext;

use crate::ending::Ending;

/// The calls of a connection that are under way, by the token of their progress.
///
/// A report for any other token is dropped: its call has ended.
#[derive(Clone, Default)]
pub(crate) struct Progress(Arc<Mutex<HashMap<ProgressToken, UnderWay>>>);

struct UnderWay {
    request: RequestId,
    call: CallContext,
}

/// Until this is dropped, progress of a call is shown.
pub(crate) struct Followed {
    progress: Progress,
    token: ProgressToken,
}

impl Progress {
    pub(crate) fn follow(
        &self,
        request: &RequestHandle<RoleClient>,
        call: CallContext,
    ) -> Followed {
        let token = request.progress_token.clone();
        self.calls().insert(token.clone(), UnderWay { request: request.id.clone(), call });
        Followed { progress: self.clone(), token }
    }

    fn show(&self, report: &ProgressNotificationParam) {
        let call = self.calls().get(&report.progress_token).map(|under_way| under_way.call.clone());
        if let Some(call) = call {
            call.progress(line(report));
        }
    }

    /// The reply to a request is here, so what comes for it later is late.
    fn replied(&self, request: &RequestId) {
        self.calls().retain(|_, under_way| under_way.request != *request);
    }

    /// Nothing here can panic half-way, so a poisoned lock holds a whole value.
    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, UnderWay>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.progress.calls().remove(&self.token);
    }
}

/// A transport whose reports of progress go straight to their calls, and that tells its end.
///
/// `rmcp` handles each notification in a task of its own, where two reports may change places,
/// and the last may come after the result.
pub(crate) struct Followable<T> {
    pub(crate) transport: T,
    pub(crate) progress: Progress,
    pub(crate) ending: Ending,
    /// Whether an error that names no call is the answer to one. Over HTTP it is: a server that
    /// has lost our session says so in this way, and never answers the call itself.
    pub(crate) stray_errors_end: bool,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Followable<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(message) = self.transport.receive().await else {
                self.ending.set("closed the connection".to_owned());
                return None;
            };
            match &message {
                JsonRpcMessage::Response(reply) => self.progress.replied(&reply.id),
                JsonRpcMessage::Error(JsonRpcError { id: None, error, .. })
                    if self.stray_errors_end && !self.progress.calls().is_empty() =>
                {
                    self.ending.set(format!("answered: {}", error.message));
                    return None;
                }
                JsonRpcMessage::Notification(told) => {
                    if let ServerNotification::ProgressNotification(report) = &told.notification {
                        self.progress.show(&report.params);
                        continue;
                    }
                }
                _ => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        let closed = self.transport.close().await;
        self.ending.set("was closed".to_owned());
        closed
    }
}

/// `[3/10] text`, or as much of it as the server says.
fn line(report: &ProgressNotificationParam) -> String {
    let count = match report.total {
        Some(total) => format!("[{}/{total}]", report.progress),
        None => format!("[{}]", report.progress),
    };
    match &report.message {
        Some(message) => format!("{count} {}", message.chars().take(LONGEST).collect::<String>()),
        None => count,
    }
}

/// In characters.
const LONGEST: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_as_a_line() {
        let token = ProgressToken(rmcp::model::NumberOrString::Number(1));
        let mut report = ProgressNotificationParam::new(token, 3.0);
        assert_eq!(line(&report), "[3]");
        report.total = Some(10.0);
        assert_eq!(line(&report), "[3/10]");
        report.message = Some("copying".into());
        assert_eq!(line(&report), "[3/10] copying");
        report.progress = 2.5;
        assert_eq!(line(&report), "[2.5/10] copying");
    }
}
