//! [`Client`]: what a server may ask of us: the working folder, and questions to a person.

// Roots are to be replaced in a later protocol; the servers of today ask for them.
#![expect(deprecated)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation, InputRequest,
    ListRootsResult, ProtocolVersion, Root, RootsCapabilities, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;

use crate::elicitation::{Answer, Elicit, Elicitation, Wanted};

/// Our side of a connection.
#[derive(Clone)]
pub(crate) struct Client {
    server: Arc<str>,
    folder: Option<Root>,
    elicit: Option<Elicit>,
    /// Questions that wait for a person.
    open_questions: Arc<AtomicUsize>,
    /// Called when the server says that its tools have changed.
    tools_changed: Arc<dyn Fn() + Send + Sync>,
}

impl Client {
    pub(crate) fn new(
        server: &str,
        folder: Option<&Path>,
        elicit: Option<Elicit>,
        tools_changed: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        Self {
            server: server.into(),
            folder: folder.map(|folder| Root::new(file_uri(folder))),
            elicit,
            open_questions: Arc::default(),
            tools_changed,
        }
    }

    /// Whether a person is being asked.
    pub(crate) fn is_asking(&self) -> bool {
        self.open_questions.load(Ordering::Relaxed) > 0
    }

    /// Answers a request that came as the reply to a call.
    pub(crate) async fn answer(&self, request: InputRequest) -> Result<Value, ErrorData> {
        let answer = match request {
            InputRequest::Elicitation(request) => {
                serde_json::to_value(self.elicited(request.params).await)
            }
            InputRequest::ListRoots(_) => serde_json::to_value(self.roots()),
            _ => return Err(ErrorData::invalid_params("sampling is not offered", None)),
        };
        answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    fn roots(&self) -> ListRootsResult {
        ListRootsResult::new(self.folder.iter().cloned().collect())
    }

    async fn elicited(&self, params: ElicitRequestParams) -> ElicitResult {
        let decline = ElicitResult::new(ElicitationAction::Decline);
        let Some(elicit) = &self.elicit else { return decline };
        let (message, wanted) = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                match serde_json::to_value(requested_schema) {
                    Ok(schema) => (message, Wanted::Form(schema)),
                    Err(_) => return decline,
                }
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                (message, Wanted::Visit(url))
            }
            _ => return decline,
        };
        let defaults = defaults(&wanted);
        let _open = Question::open(&self.open_questions);
        match elicit(Elicitation { server: self.server.to_string(), message, wanted }).await {
            Answer::Accept(None) => ElicitResult::new(ElicitationAction::Accept),
            Answer::Accept(Some(mut content)) => {
                if let Some(content) = content.as_object_mut() {
                    for (name, default) in defaults {
                        content.entry(name).or_insert(default);
                    }
                }
                ElicitResult::new(ElicitationAction::Accept).with_content(content)
            }
            Answer::Decline => decline,
            Answer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = self.folder.as_ref().map(|_| RootsCapabilities::default());
        capabilities.elicitation = self.elicit.as_ref().map(|_| {
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default())
        });
        let this = Implementation::new("toolloop", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, this)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            answer = self.elicited(request) => Ok(answer),
            // The server does not want to know any more.
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        (self.tools_changed)();
    }
}

/// Counts a question for as long as it is open.
struct Question<'a>(&'a AtomicUsize);

impl<'a> Question<'a> {
    fn open(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the fields of a form are where a person leaves them out.
fn defaults(wanted: &Wanted) -> Vec<(String, Value)> {
    let Wanted::Form(schema) = wanted else { return Vec::new() };
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone()))).collect()
}

/// The folder as a `file` address, with what an address cannot hold escaped.
fn file_uri(folder: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut uri = "file://".to_owned();
    for &byte in folder.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_escaped_in_its_address() {
        assert_eq!(file_uri(Path::new("/home/ada/my ä")), "file:///home/ada/my%20%C3%A4");
    }
}
