//! [`Plan`]: everything a run needs, found before anything is started or shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use toolloop::mcp::{McpError, McpServers};
use toolloop::tool::{
    ApprovalRule, ApprovalRules, CompactionConfig, DiskCacher, EffectClass, LoopDetectorConfig,
    TaskTool, ToolLoopConfig, ToolRegistry, ToolResultCacher,
};
use toolloop::tools::{Builtin, FetchUrl, ResultStore, Root};
use toolloop_core::{ChatMessage, ChatParams, DynProvider, ToolLimit};
use toolloop_providers::DialectProvider;

use crate::approval::Policy;
use crate::args::{RunArgs, Yes};
use crate::asking::Asking;
use crate::connect::{Chosen, Connection, choose_and_serve};
use crate::folder;
use crate::grants::Grants;
use crate::origin::{Sourced, short_path};
use crate::report::Report;
use crate::servers::FolderServers;
use crate::settings::{Environment, Settings};
use crate::task;
use crate::toolbox::{TASK, TOOLS_OF_A_TASK, built_in, check_tools, is_of_server};

/// Everything a run needs.
pub(crate) struct Plan {
    pub(crate) chosen: Chosen,
    pub(crate) connection: Connection,
    pub(crate) provider: DialectProvider,
    pub(crate) settings: Settings,
    pub(crate) folder: PathBuf,
    pub(crate) task: String,
    pub(crate) tools: ToolRegistry,
    /// The folder as the tools see it.
    pub(crate) root: Root,
    /// Where results go that are too long for the conversation.
    pub(crate) results: ResultStore,
    pub(crate) policy: Policy,
    /// What the folder's `.mcp.json` says.
    pub(crate) servers: Result<Option<FolderServers>, McpError>,
    /// Whether a flag says that they may be started.
    pub(crate) servers_agreed: bool,
}

impl Plan {
    /// Finds out everything; what cannot be is told before anything has started.
    pub(crate) async fn prepare(
        args: &RunArgs,
        matches: &ArgMatches,
        environment: &Environment<'_>,
    ) -> Result<Self, Report> {
        let settings = Settings::of_run(args, matches, environment)?;
        let folder = folder::open(args.dir.as_deref())?;
        let task = task::read(args.task.as_deref(), args.quiet || args.json.is_some())?;
        let results = ResultStore::temporary();
        let builtin = Builtin::in_folder(&folder)
            .map_err(|error| {
                Report::usage(format!("cannot open {}: {error}", short_path(&folder)))
            })?
            .with_results(results.clone())
            .with_fetch(FetchUrl::new());
        let root = builtin.root().clone();
        let tools = built_in(builtin, &settings);
        let policy = policy(&tools, &settings, environment, &folder)?;
        if let Some(wanted) = &settings.tools {
            let built_in =
                wanted.value.iter().map(String::as_str).filter(|name| !is_of_server(name));
            check_tools(built_in, &tools, &wanted.origin)?;
        }
        let wanted = settings.tools.as_ref();
        let wants_servers =
            wanted.is_none_or(|tools| tools.value.iter().any(|name| is_of_server(name)));
        let servers = match wants_servers && !args.no_mcp {
            true => FolderServers::read(&folder, environment),
            false => Ok(None),
        };
        let chosen = choose_and_serve(&settings, environment).await?;
        let connection = Connection::to(&chosen.target)?;
        let dialect = settings.dialect.as_ref().map(|dialect| dialect.value).unwrap_or_default();
        let limit = settings.one_tool.as_ref().map(|one| match one.value {
            true => ToolLimit::One,
            false => ToolLimit::Unlimited,
        });
        let provider = connection.speaking(dialect.into(), limit);
        let servers_agreed = args.mcp;
        Ok(Self {
            chosen,
            connection,
            provider,
            settings,
            folder,
            task,
            tools,
            root,
            results,
            policy,
            servers,
            servers_agreed,
        })
    }

    /// The tools of the run: the built-in ones, a sub-agent with this configuration, and those of
    /// servers, as far as they are wanted; and what is missing of those that were named.
    pub(crate) fn registry(
        &self,
        servers: Option<&McpServers>,
        asking: &Asking,
        config: &ToolLoopConfig,
    ) -> (ToolRegistry, Option<Report>) {
        let mut tools = self.tools.clone();
        let tools_of_it = TOOLS_OF_A_TASK.into_iter().filter(|name| self.wants(name));
        let task = TaskTool::new(Arc::new(self.provider.clone()), tools.only(tools_of_it));
        tools.register(task.with_config(config.clone()));
        // Its own tools are asked about as if they were called here.
        asking.policy().classes.insert(TASK.to_owned(), EffectClass::ReadOnly);
        for tool in servers.into_iter().flat_map(McpServers::tools) {
            // A server's own word that its tool changes nothing is no reason not to ask.
            asking.policy().classes.insert(tool.definition().name, EffectClass::Once);
            tools.register_shared(tool);
        }
        let Some(wanted) = &self.settings.tools else {
            // It can carry out what the model knows, so it is asked for by name.
            return (tools.without(["fetch_url"]), None);
        };
        let names = wanted.value.iter().map(String::as_str);
        let missing = check_tools(names.clone(), &tools, &wanted.origin).err();
        (tools.only(names), missing)
    }

    /// Whether the settings name a tool, or leave it open.
    fn wants(&self, name: &str) -> bool {
        self.settings.tools.as_ref().is_none_or(|tools| tools.value.iter().any(|it| it == name))
    }

    /// What the loop is to do.
    pub(crate) fn config(&self) -> ToolLoopConfig {
        ToolLoopConfig {
            max_iterations: match &self.settings.max_iterations {
                Some(limit) => limit.value,
                None => DEFAULT_ITERATIONS,
            },
            timeout: self.settings.timeout.as_ref().map(|limit| limit.value),
            // With an eye on results: who waits for a job asks the same again and again.
            loop_detector: Some(LoopDetectorConfig::default()),
            result_cacher: self.wants("read_result").then(|| {
                let cacher = DiskCacher::new(self.results.clone());
                Arc::new(cacher.with_inline_threshold(MOST_INLINE)) as Arc<dyn ToolResultCacher>
            }),
            final_answer: true,
            compaction: Some(CompactionConfig::for_window(self.provider.metadata().context_window)),
            ..ToolLoopConfig::default()
        }
    }

    /// What the model is asked first.
    pub(crate) fn params(&self) -> ChatParams {
        ChatParams {
            messages: vec![ChatMessage::user(self.task.as_str())],
            system: Some(self.system()),
            ..ChatParams::default()
        }
    }

    fn system(&self) -> String {
        match &self.settings.system {
            Some(system) => system.value.clone(),
            // Without a date: it would void the provider's prompt cache every day.
            None => format!(
                "You are an agent that a person runs in a terminal. You work in the folder {}; \
                 paths are relative to it. Use the tools to find out what you need instead of \
                 guessing, change only what the task asks for, and then answer briefly, in \
                 Markdown.",
                self.folder.display()
            ),
        }
    }
}

fn policy(
    tools: &ToolRegistry,
    settings: &Settings,
    environment: &Environment<'_>,
    folder: &Path,
) -> Result<Policy, Report> {
    if let Some(Sourced { value: Yes::Tools(names), origin }) = &settings.yes {
        let built_in = names.iter().map(String::as_str).filter(|name| !is_of_server(name));
        check_tools(built_in, tools, origin)?;
    }
    let values =
        |rules: &[Sourced<ApprovalRule>]| rules.iter().map(|rule| rule.value.clone()).collect();
    let mut rules = ApprovalRules {
        deny: values(&settings.approvals.deny),
        ask: values(&settings.approvals.ask),
        allow: values(&settings.approvals.allow),
    };
    rules.allow.push(ApprovalRule::class(EffectClass::ReadOnly));
    // What it ends was approved when it began.
    rules.allow.push(ApprovalRule::tool("bash_kill"));
    let names = tools.definitions().into_iter().map(|tool| tool.name);
    Ok(Policy {
        rules,
        classes: names
            .map(|name| {
                let class = tools.effect_class(&name).unwrap_or_default();
                (name, class)
            })
            .collect(),
        yes: settings.yes.as_ref().map(|yes| yes.value.clone()),
        grants: Grants::load(environment.grants_file(), folder)?,
    })
}

/// Enough for most tasks, and an end for the others.
pub(crate) const DEFAULT_ITERATIONS: u32 = 50;
/// In tokens: a little more than the file tools give at once, so that it is they who say how to
/// see the rest.
const MOST_INLINE: u32 = 12_500;
