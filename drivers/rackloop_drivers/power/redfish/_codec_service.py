"""The resources of every simulated Redfish service: documents, accounts and sessions (DSP0266)."""

from __future__ import annotations

from rackloop_drivers.power.redfish._codec import ROOT, SESSIONS, Resource, collection, link, resource

METADATA = "/redfish/v1/$metadata"
ODATA = "/redfish/v1/odata"
ACCOUNTS = "/redfish/v1/AccountService/Accounts"
ROLES = "/redfish/v1/AccountService/Roles"
SESSION_SERVICE = "/redfish/v1/SessionService"
ACCOUNT_SERVICE = "/redfish/v1/AccountService"

# The roles that DSP0266 predefines, with their privileges.
_ROLES = {
    "Administrator": ["Login", "ConfigureManager", "ConfigureUsers", "ConfigureComponents", "ConfigureSelf"],
    "Operator": ["Login", "ConfigureComponents", "ConfigureSelf"],
    "ReadOnly": ["Login", "ConfigureSelf"],
}
# The schemas that resources here are of, and the version of each; those of a collection have none.
_SCHEMAS = {
    "ServiceRoot": "v1_15_0",
    "ComputerSystem": "v1_20_0",
    "ComputerSystemCollection": None,
    "Chassis": "v1_23_0",
    "ChassisCollection": None,
    "Manager": "v1_19_0",
    "ManagerCollection": None,
    "LogService": "v1_5_0",
    "LogServiceCollection": None,
    "LogEntry": "v1_15_0",
    "LogEntryCollection": None,
    "PowerEquipment": "v1_2_0",
    "PowerDistribution": "v1_3_0",
    "PowerDistributionCollection": None,
    "Outlet": "v1_4_1",
    "OutletCollection": None,
    "SessionService": "v1_1_9",
    "Session": "v1_6_0",
    "SessionCollection": None,
    "AccountService": "v1_13_0",
    "ManagerAccount": "v1_10_0",
    "ManagerAccountCollection": None,
    "Role": "v1_3_1",
    "RoleCollection": None,
}
_SCHEMAS_AT = "http://redfish.dmtf.org/schemas/v1"
_EDMX = "http://docs.oasis-open.org/odata/ns/edmx"
_EDM = "http://docs.oasis-open.org/odata/ns/edm"


def metadata() -> str:
    """The OData metadata document: where the schemas are."""
    references = []
    for name, version in _SCHEMAS.items():
        included = f'<edmx:Include Namespace="{name}"/>'
        if version is not None:
            included += f'<edmx:Include Namespace="{name}.{version}"/>'
        references.append(f'<edmx:Reference Uri="{_SCHEMAS_AT}/{name}_v1.xml">{included}</edmx:Reference>')
    service = (
        '<edmx:DataServices><Schema xmlns="' + _EDM + '" Namespace="Service"><EntityContainer Name="Service" '
        'Extends="ServiceRoot.v1_15_0.ServiceContainer"/></Schema></edmx:DataServices>'
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<edmx:Edmx xmlns:edmx="{_EDMX}" Version="4.0">{"".join(references)}{service}</edmx:Edmx>\n'
    )


def odata(links: dict[str, str]) -> Resource:
    """The OData service document: the root and what it leads to, by name."""
    entries = {"Service": ROOT, **links}
    value = [{"name": name, "kind": "Singleton", "url": url} for name, url in entries.items()]
    return {"@odata.context": METADATA, "value": value}


def described_by(found: Resource) -> str | None:
    """The header that says by what schema a resource is described."""
    kind = str(found.get("@odata.type", "")).removeprefix("#")
    schema = kind.rpartition(".")[0]
    # A collection's type has no version: its schema is called like itself.
    return f"<{_SCHEMAS_AT}/{schema}.json>; rel=describedby" if schema else None


def session_service() -> Resource:
    """The collection of sessions."""
    kind = "SessionService.v1_1_9.SessionService"
    return resource(SESSION_SERVICE, kind, "Session Service", ServiceEnabled=True, Sessions=link(SESSIONS))


def session(number: int, user: str) -> Resource:
    """A session: a user who is logged in."""
    return resource(f"{SESSIONS}/{number}", "Session.v1_6_0.Session", f"Session {number}", UserName=user)


def account_resource(path: str, user: str, *, may_act: bool) -> Resource | None:
    """The account service's resource at ``path``; None where there is none. Its one account is ``user``'s."""
    start, _, name = path.rpartition("/")
    if path == ACCOUNT_SERVICE:
        kind = "AccountService.v1_13_0.AccountService"
        links = {"Accounts": link(ACCOUNTS), "Roles": link(ROLES)}
        return resource(path, kind, "Account Service", ServiceEnabled=True, **links)
    if path == ACCOUNTS:
        return collection(path, "ManagerAccount", "Accounts", [link(f"{ACCOUNTS}/1")])
    if path == f"{ACCOUNTS}/1":
        role = "Administrator" if may_act else "ReadOnly"
        return resource(
            path,
            "ManagerAccount.v1_10_0.ManagerAccount",
            f"Account of {user}",
            UserName=user,
            Password=None,
            RoleId=role,
            Enabled=True,
            AccountTypes=["Redfish"],
            Links={"Role": link(f"{ROLES}/{role}")},
        )
    if path == ROLES:
        return collection(path, "Role", "Roles", [link(f"{ROLES}/{role}") for role in _ROLES])
    if start == ROLES and name in _ROLES:
        return resource(
            path,
            "Role.v1_3_1.Role",
            f"Role {name}",
            RoleId=name,
            IsPredefined=True,
            AssignedPrivileges=_ROLES[name],
        )
    return None
