"""What can go wrong between Tracon and its database, named by what to do about it."""

from domain.errors import TraconError, Unavailable


class DatabaseError(TraconError):
    """Base of what goes wrong below the event log. Catch a subclass: each calls for something else."""

    code = "database_error"


class StoreUnavailable(Unavailable, DatabaseError):
    """Postgres cannot be reached, or hung up. Wait and try again.

    A statement that was under way may or may not have taken effect: read before repeating it.
    """

    code = "store_unavailable"


class DatabaseUnusable(DatabaseError):
    """This database will not serve as things are. An operator has to change what the message names."""

    code = "database_unusable"


class MigrationRefused(DatabaseUnusable):
    """The database and this build disagree about its schema. Deploy the build that the message asks for."""

    code = "migration_refused"
