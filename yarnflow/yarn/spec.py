"""An application of yarnflow as skein's specification.

Decides what skein's ApplicationMaster is told beside what :mod:`yarnflow.core.yarn` says: its JVM's
options, and that containers which fail are nobody's but the ResourceManager's business.  Flink
counterpart: ``YarnClusterDescriptor.startAppMaster``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from yarnflow.config.secrets import HIDDEN, is_secret, masked_text
from yarnflow.core.yarn import ApplicationSpec, ContainerSpec, LocalResource
from yarnflow.yarn.library import skein

#: skein's service of the TaskManagers; worker ids are ``taskmanager_<number>``
TASK_MANAGER_SERVICE: Final = "taskmanager"
#: skein's service of drivers that have a container each
DRIVER_SERVICE: Final = "driver"
#: short-lived, small Java: half the processor time of HotSpot's defaults until the first container.
#: JVMs before 9 do not know the variable.
_JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_JAVA_OPTIONS_NAME: Final = "JDK_JAVA_OPTIONS"


def skein_spec(spec: ApplicationSpec, security: Any = None) -> Any:
    """The ``skein.ApplicationSpec``.

    Parameters
    ----------
    spec : ApplicationSpec
    security : skein.Security, optional
        The application's certificate; without it, skein takes that of whoever submits.
    """
    library = skein()
    master = spec.master
    services = {TASK_MANAGER_SERVICE: _service(spec.task_manager, spec.initial_task_managers)}
    if spec.driver is not None:
        services[DRIVER_SERVICE] = _service(spec.driver, 0)
    options = " ".join(filter(None, (_JAVA_OPTIONS, master.environment.get(_JAVA_OPTIONS_NAME, ""))))
    return library.ApplicationSpec(
        name=spec.name,
        queue=spec.queue,
        tags=set(spec.tags),
        node_label=spec.node_label,
        file_systems=list(spec.file_systems),
        acls=_acls(spec),
        max_attempts=spec.max_attempts,
        master=library.Master(
            resources=_resources(master),
            files=_files(master),
            env={**master.environment, _JAVA_OPTIONS_NAME: options},
            # meant for skein's own JVM, not for those the script starts
            script=f"unset {_JAVA_OPTIONS_NAME}\n{master.script}",
            security=security,
        ),
        services=services,
    )


def _service(container: ContainerSpec, instances: int) -> Any:
    return skein().Service(
        resources=_resources(container),
        files=_files(container),
        env=dict(container.environment),
        script=container.script,
        instances=instances,
        node_label=container.node_label,
        max_restarts=0,
        allow_failures=True,
    )


def describe(spec: ApplicationSpec) -> str:
    """The specification as YAML for people (``--dry-run``); values that look secret are masked."""
    shown = replace(
        spec,
        master=_masked(spec.master),
        task_manager=_masked(spec.task_manager),
        driver=None if spec.driver is None else _masked(spec.driver),
    )
    text: str = skein_spec(shown).to_yaml(skip_nulls=True)
    return text


def _masked(container: ContainerSpec) -> ContainerSpec:
    return replace(
        container,
        environment={
            name: HIDDEN if is_secret(name) else masked_text(value)
            for name, value in container.environment.items()
        },
    )


def _resources(container: ContainerSpec) -> Any:
    return skein().Resources(memory=container.memory_mib, vcores=container.vcores)


def _files(container: ContainerSpec) -> dict[str, Any]:
    return {name: _file(resource) for name, resource in container.resources.items()}


def _file(resource: LocalResource) -> Any:
    # skein looks size and time up itself where both are 0
    known = resource.size_bytes >= 0 and resource.modified_ms >= 0
    return skein().File(
        source=resource.source,
        type="ARCHIVE" if resource.archive else "FILE",
        visibility=resource.visibility.value,
        size=resource.size_bytes if known else 0,
        timestamp=resource.modified_ms if known else 0,
    )


def _acls(spec: ApplicationSpec) -> Any:
    if not spec.view_acls.strip() and not spec.modify_acls.strip():
        return skein().ACLs()
    view_users, view_groups = _users_and_groups(spec.view_acls)
    modify_users, modify_groups = _users_and_groups(spec.modify_acls)
    return skein().ACLs(
        enable=True,
        view_users=view_users,
        view_groups=view_groups,
        modify_users=modify_users,
        modify_groups=modify_groups,
        # skein's own page knows users only
        ui_users=sorted({*view_users, *modify_users}),
    )


def _users_and_groups(text: str) -> tuple[list[str], list[str]]:
    """YARN's form: ``user1,user2 group1,group2``; a leading blank means no users."""
    users, _, groups = text.rstrip().partition(" ")
    return _names(users), _names(groups)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
