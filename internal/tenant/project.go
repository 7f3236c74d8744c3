package tenant

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

// Project is a tenant.
type Project struct {
	ID   string
	Name string
	// Profile is the set of webhook rules of its endpoints that do not choose their own.
	Profile   string
	CreatedAt time.Time
}

const projectColumns = `id, name, profile, created_at`

// NewProject is what CreateProject needs.
type NewProject struct {
	Name string
	// OwnerID is the first owner's user id. It may be empty on the command line: admins can still open the project.
	OwnerID string
}

// CreateProject makes a project with its first owner. A user makes it for itself; only an admin or the command line makes
// one for somebody else.
func CreateProject(ctx context.Context, pool *pgxpool.Pool, actor Actor, n NewProject) (Project, error) {
	own := actor.Kind == ActorUser && actor.ID != "" && n.OwnerID == actor.ID
	if !own {
		if err := actor.Require(PermAdmin); err != nil {
			return Project{}, err
		}
	}
	name, problem := checkName(n.Name)
	if problem != "" {
		return Project{}, store.Invalid("name", problem)
	}

	var project Project
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `insert into projects (id, name) values (@id, @name) returning `+projectColumns,
			pgx.StrictNamedArgs{"id": store.NewID("project"), "name": name})
		if project, err = collectProject(rows, err); err != nil {
			return fmt.Errorf("create project: %w", err)
		}
		a := actor.In(project.ID)
		if n.OwnerID != "" {
			owner, err := UserByID(ctx, tx, n.OwnerID)
			if err != nil {
				return err
			}
			if err := insertMemberTx(ctx, tx, project.ID, owner, RoleOwner); err != nil {
				return err
			}
		}
		return Audit(ctx, tx, a, "project.create", "project", project.ID, map[string]any{"name": name, "ownerId": n.OwnerID})
	})
	return project, err
}

// ProjectByID reads a project. It checks no rights: see ActorInProject.
func ProjectByID(ctx context.Context, db store.DB, projectID string) (Project, error) {
	rows, err := db.Query(ctx, `select `+projectColumns+` from projects where id = @project_id`,
		pgx.StrictNamedArgs{"project_id": projectID})
	project, err := collectProject(rows, err)
	if err != nil {
		return Project{}, fmt.Errorf("read project %s: %w", projectID, err)
	}
	return project, nil
}

// RenameProject gives a project another name.
func RenameProject(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID, name string) (Project, error) {
	if err := actor.RequireIn(projectID, PermManageTeam); err != nil {
		return Project{}, err
	}
	name, problem := checkName(name)
	if problem != "" {
		return Project{}, store.Invalid("name", problem)
	}
	return updateProject(ctx, pool, actor, projectID, "project.rename", `name = @value`, name)
}

var profileName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// ChooseProfile sets the profile of a project's endpoints that do not choose their own. Which profiles there are is for
// the caller to know and check.
func ChooseProfile(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID, profile string) (Project, error) {
	if err := actor.RequireIn(projectID, PermChooseProfile); err != nil {
		return Project{}, err
	}
	if !profileName.MatchString(profile) {
		return Project{}, store.Invalid("profile", "There is no such profile.")
	}
	return updateProject(ctx, pool, actor, projectID, "project.choose_profile", `profile = @value`, profile)
}

// updateProject sets one column, and notes its value before and after.
func updateProject(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID, action, assignment, value string) (Project, error) {
	var after Project
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select `+projectColumns+` from projects where id = @project_id for update`,
			pgx.StrictNamedArgs{"project_id": projectID})
		before, err := collectProject(rows, err)
		if err != nil {
			return fmt.Errorf("lock project %s: %w", projectID, err)
		}
		rows, err = tx.Query(ctx, `update projects set `+assignment+` where id = @project_id returning `+projectColumns,
			pgx.StrictNamedArgs{"project_id": projectID, "value": value})
		if after, err = collectProject(rows, err); err != nil {
			return fmt.Errorf("change project %s: %w", projectID, err)
		}
		if before == after {
			return nil
		}
		return Audit(ctx, tx, actor.In(projectID), action, "project", projectID, map[string]any{
			"before": map[string]string{"name": before.Name, "profile": before.Profile},
			"after":  map[string]string{"name": after.Name, "profile": after.Profile},
		})
	})
	return after, err
}

// Membership is a project as one of its members sees it.
type Membership struct {
	Project
	Role Role
}

// ListProjectsOf lists the projects that a user is a member of, by name.
func ListProjectsOf(ctx context.Context, db store.DB, userID string) ([]Membership, error) {
	rows, err := db.Query(ctx, `
		select p.id, p.name, p.profile, p.created_at, m.role
		from members m
		join projects p on p.id = m.project_id
		where m.user_id = @user_id
		order by lower(p.name), p.id`,
		pgx.StrictNamedArgs{"user_id": userID})
	if err != nil {
		return nil, fmt.Errorf("list projects of user %s: %w", userID, err)
	}
	projects, err := pgx.CollectRows(rows, pgx.RowToStructByName[Membership])
	if err != nil {
		return nil, fmt.Errorf("list projects of user %s: %w", userID, err)
	}
	return projects, nil
}

// ProjectSummary is a project as an admin sees it.
type ProjectSummary struct {
	Project
	Members int
	// Owners are the owners' addresses, in their order.
	Owners []string
}

// ListProjects pages through all projects of the installation, newest first. It is for admins only. A search narrows the
// list to names that contain it, in any case.
func ListProjects(ctx context.Context, db store.DB, actor Actor, search string, page store.Page) (store.List[ProjectSummary], error) {
	if err := actor.Require(PermAdmin); err != nil {
		return store.List[ProjectSummary]{}, err
	}
	k, err := store.KeysetOf[string](page)
	if err != nil {
		return store.List[ProjectSummary]{}, err
	}
	// Ids are made in the order of time, so they are the key.
	order, beyond := "desc", "p.id < @from"
	if k.Backward() {
		order, beyond = "asc", "p.id > @from"
	}
	args := pgx.StrictNamedArgs{"search": search, "fetch": k.Fetch()}
	condition := `position(lower(@search) in lower(p.name)) > 0`
	if k.From != nil {
		condition += ` and ` + beyond
		args["from"] = *k.From
	}
	rows, err := db.Query(ctx, `
		select p.id, p.name, p.profile, p.created_at, t.members, t.owners
		from projects p
		cross join lateral (
			select count(*) as members,
				coalesce(array_agg(u.email order by u.email) filter (where m.role = 'owner'), '{}') as owners
			from members m
			join users u on u.id = m.user_id
			where m.project_id = p.id
		) t
		where `+condition+`
		order by p.id `+order+`
		limit @fetch`, args)
	if err != nil {
		return store.List[ProjectSummary]{}, fmt.Errorf("list projects: %w", err)
	}
	projects, err := pgx.CollectRows(rows, pgx.RowToStructByName[ProjectSummary])
	if err != nil {
		return store.List[ProjectSummary]{}, fmt.Errorf("list projects: %w", err)
	}
	return store.ListOf(k, projects, func(p ProjectSummary) string { return p.ID }), nil
}

// collectProject reads the one project of a query whose error it is given as well.
func collectProject(rows pgx.Rows, err error) (Project, error) {
	if err != nil {
		return Project{}, err
	}
	project, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Project])
	return project, store.MapError(err)
}
